// Perplexity of a decoder over a text.
#ifndef HIPPODROME_TOOLS_EVALUATE_EVAL_PERPLEXITY_H_
#define HIPPODROME_TOOLS_EVALUATE_EVAL_PERPLEXITY_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/models/h3/hybrid_h3.h"
#include "engine/passes/forward.h"
#include "kernels/backend.h"
#include "tools/evaluate/interval.h"

namespace hippodrome {

struct Perplexity {
  int64_t tokens = 0;     // scored
  double nll = 0;         // mean of -ln p(token | those before it in its window), in nats
  double perplexity = 0;  // exp(nll)
  std::vector<ValueBlock> windows;
};

// -ln softmax(logits)[target] over the first `vocab` logits, in double.
double NegativeLogLikelihood(std::span<const float> logits, int64_t vocab, int32_t target);

// Scores non-overlapping windows of `window` tokens from a zero state each; every token of a window
// predicts its successor, so the last one predicts the first of the next window, and the incomplete
// tail is dropped. Errors: kInvalidArgument when `ids` has not window + 1 tokens, and those of
// Forward().
absl::StatusOr<Perplexity> EvaluatePerplexity(
    Backend& backend, const HybridH3& model, std::span<const int32_t> ids, int64_t window,
    const ForwardMode& mode = {},
    const std::function<void(int64_t done, int64_t total)>& progress = {});

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_EVALUATE_EVAL_PERPLEXITY_H_
