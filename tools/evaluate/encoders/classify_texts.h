// What a classifier says of texts.
#ifndef HIPPODROME_TOOLS_EVALUATE_ENCODERS_CLASSIFY_TEXTS_H_
#define HIPPODROME_TOOLS_EVALUATE_ENCODERS_CLASSIFY_TEXTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/evaluate/encoders/encoder_session.h"
#include "tools/evaluate/labelled_texts.h"

namespace hippodrome {

struct TextLogits {
  int64_t labels = 0;         // logits of a text; 1 for a choice
  std::vector<float> values;  // [texts, labels]
  int64_t truncated = 0;      // texts that were too long
};

// `what` is said beside the progress. Errors as of EncoderSession::Run().
absl::StatusOr<TextLogits> ClassifyTexts(EncoderSession& session, const std::string& what,
                                         const LabelledTexts& texts);

// The output with the largest logit of each text, the first among equals.
std::vector<int64_t> LargestOutputs(const TextLogits& logits);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_EVALUATE_ENCODERS_CLASSIFY_TEXTS_H_
