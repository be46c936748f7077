// From the logits of single tokens to labelled stretches of text.
#ifndef HIPPODROME_ENGINE_TASKS_TAGGED_SPANS_H_
#define HIPPODROME_ENGINE_TASKS_TAGGED_SPANS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/tokenizer/encode_pair.h"

namespace hippodrome {

// How tokens become entities, as in Hugging Face's token classification.
enum class Aggregation : uint8_t {
  kNone,     // each token for itself
  kSimple,   // neighbours of one entity (B- and I- of it) together
  kFirst,    // words, labelled as their first token, then as kSimple
  kAverage,  // words, by the mean of their tokens' probabilities, then as kSimple
  kMax,      // words, as their surest token, then as kSimple
};

struct TaggedSpan {
  std::string label;  // a label as it is (kNone), else without B- or I-
  float score = 0;    // probability, the mean of what was put together
  int64_t begin = 0;  // code points of the text
  int64_t end = 0;
  int64_t token = -1;  // index into the input (kNone only)
};

// logits: [tokens of `input`, labels], of which those that the layout added are unread. Spans of
// the label "O" are left out.
std::vector<TaggedSpan> TaggedSpans(const EncodedText& input, std::span<const float> logits,
                                    const std::vector<std::string>& labels,
                                    Aggregation aggregation);

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_TASKS_TAGGED_SPANS_H_
