// How likely a decoder takes each of several continuations of a context to be.
#ifndef HIPPODROME_TOOLS_EVALUATE_EVAL_CHOICES_H_
#define HIPPODROME_TOOLS_EVALUATE_EVAL_CHOICES_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/models/h3/hybrid_h3.h"
#include "engine/tokenizer/bpe.h"
#include "kernels/backend.h"
#include "tools/evaluate/choices_file.h"

namespace hippodrome {

// The tokens of a context and, from place `begin` >= 1 on, of its continuation.
struct Continuation {
  std::vector<int32_t> ids;
  int64_t begin = 0;
};

// Both texts as one, cut as lm-evaluation-harness does it: white space that ends the context goes
// with the continuation, and what is left of the context has as many tokens as it has by itself. A
// context that is empty then is the end-of-text token. Of token ids, those of both. `tokenizer` may
// be null, `end_of_text` -1. Errors: kFailedPrecondition when one is lacking that is needed,
// kInvalidArgument when the continuation has no token of its own.
absl::StatusOr<Continuation> Join(const Passage& context, const Passage& continuation,
                                  const BpeTokenizer* tokenizer, int64_t end_of_text);

struct ContinuationScore {
  double log_probability = 0;  // the sum over its tokens, in order
  int64_t tokens = 0;
  bool greedy = true;  // each of them is one of the likeliest
};

// Errors: those of ForwardScores().
absl::StatusOr<ContinuationScore> ScoreContinuation(Backend& backend, const HybridH3& model,
                                                    const Continuation& continuation);

// The place of the likeliest, the first among equals. REQUIRES: not empty.
int64_t Likeliest(std::span<const ContinuationScore> scores);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_EVALUATE_EVAL_CHOICES_H_
