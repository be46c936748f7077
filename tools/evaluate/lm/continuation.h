// Continuations of contexts, in tokens, and how likely a decoder takes them to be.
#ifndef HIPPODROME_TOOLS_EVALUATE_LM_CONTINUATION_H_
#define HIPPODROME_TOOLS_EVALUATE_LM_CONTINUATION_H_

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/tokenizer/bpe.h"

namespace hippodrome {

// A text, or token ids.
using Passage = std::variant<std::string, std::vector<int32_t>>;

// The tokens of a context and, from place `begin` >= 1 on, of its continuation.
struct Continuation {
  std::vector<int32_t> ids;
  int64_t begin = 0;
};

// Makes continuations; quickest where the same context comes several times in a row. Not
// thread-safe.
class Joiner {
 public:
  // `tokenizer` may be null, `end_of_text` -1; it must outlive the joiner.
  Joiner(const BpeTokenizer* tokenizer, int64_t end_of_text)
      : tokenizer_(tokenizer), end_of_text_(end_of_text) {}

  // Both texts as one, cut as lm-evaluation-harness does it: white space that ends the context goes
  // with the continuation, and what is left of the context has as many tokens as it has by itself.
  // A context that is empty then is the end-of-text token. Of token ids, those of both. Errors:
  // kFailedPrecondition when the tokenizer or the token is lacking and needed, kInvalidArgument
  // when the continuation has no token of its own.
  absl::StatusOr<Continuation> Join(const Passage& context, const Passage& continuation);

 private:
  void Encode(const std::string& context);
  absl::StatusOr<Continuation> JoinTexts(const std::string& context,
                                         const std::string& continuation);

  const BpeTokenizer* tokenizer_;
  int64_t end_of_text_;
  // Of the last context: its own tokens, and those that it has before any continuation.
  std::string context_;
  int64_t own_tokens_ = 0;
  size_t settled_ = 0;  // bytes
  std::vector<int32_t> settled_ids_;
};

// Without the first tokens of the context, so that there are `most` at most. Of a longer
// continuation its last `most`, the first of which is then its context. REQUIRES: most >= 2.
Continuation CutContext(Continuation continuation, int64_t most);

// How windows go over a long text.
struct RollingWindows {
  int64_t window = 0;  // tokens that the model reads at a time, 1 or more; 0: all
  int64_t stride = 0;  // of these, new ones in each window but the first, in [1, window]
};

// Every one of `ids` once, as continuations of the tokens before it, as in lm-evaluation-harness'
// get_rolling_token_windows(): the first window reads the end-of-text token and scores `window`
// tokens, each later one scores the next `stride`, fewer at the end. REQUIRES: ids is not empty.
std::vector<Continuation> RollingContinuations(std::span<const int32_t> ids, int32_t end_of_text,
                                               const RollingWindows& windows);

struct ContinuationScore {
  double log_probability = 0;  // the sum over its tokens, in order
  int64_t tokens = 0;
  bool greedy = true;  // each of them is one of the likeliest
};

// The place of the likeliest, the first among equals. REQUIRES: not empty.
int64_t Likeliest(std::span<const ContinuationScore> scores);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_EVALUATE_LM_CONTINUATION_H_
