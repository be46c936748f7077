#include "tools/evaluate/perplexity.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "engine/base/status.h"
#include "engine/passes/forward.h"

namespace hippodrome {

double NegativeLogLikelihood(std::span<const float> logits, int64_t vocab, int32_t target) {
  const auto real = logits.first(vocab);
  const double largest = *std::max_element(real.begin(), real.end());
  double sum = 0;
  for (const float logit : real) sum += std::exp(logit - largest);
  return std::log(sum) + largest - logits[target];
}

absl::StatusOr<Perplexity> EvaluatePerplexity(
    Backend& backend, const HybridH3& model, std::span<const int32_t> ids, int64_t window,
    const std::function<void(int64_t done, int64_t total)>& progress) {
  const int64_t windows = (static_cast<int64_t>(ids.size()) - 1) / window;
  if (ids.empty() || windows < 1) {
    return InvalidArgument("the text has " + std::to_string(ids.size()) +
                           " tokens, expected at least a window and its successor, " +
                           std::to_string(window + 1));
  }
  const H3Config& config = model.config();
  double total = 0;
  for (int64_t w = 0; w < windows; ++w) {
    const int64_t begin = w * window;
    const auto score = [&](int64_t first, std::span<const float> logits) {
      const int64_t rows = static_cast<int64_t>(logits.size()) / config.padded_vocab_size;
      for (int64_t r = 0; r < rows; ++r) {
        total += NegativeLogLikelihood(
            logits.subspan(r * config.padded_vocab_size, config.padded_vocab_size),
            config.vocab_size, ids[begin + first + r + 1]);
      }
    };
    HIPPODROME_RETURN_IF_ERROR(
        Forward(backend, model, ids.subspan(begin, window), ForwardMode{}, score));
    if (progress) progress(w + 1, windows);
  }
  Perplexity result{.tokens = windows * window};
  result.nll = total / static_cast<double>(result.tokens);
  result.perplexity = std::exp(result.nll);
  return result;
}

}  // namespace hippodrome
