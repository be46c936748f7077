#include "engine/tasks/fill_mask.h"

#include <algorithm>
#include <cmath>

#include "engine/tasks/best_indices.h"

namespace hippodrome {
namespace {

// log sum_j exp(x_j), without overflow.
double LogSumExp(std::span<const float> logits) {
  const float largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - largest);
  return largest + std::log(sum);
}

std::vector<int32_t> Best(std::span<const float> logits, int64_t top_k,
                          std::span<const int32_t> targets) {
  if (targets.empty()) return BestIndices(logits, top_k);
  std::vector<int32_t> distinct(targets.begin(), targets.end());
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  return BestIndices(logits, distinct, top_k);
}

}  // namespace

std::vector<TokenScore> LikeliestTokens(std::span<const float> logits, int64_t top_k,
                                        std::span<const int32_t> targets) {
  if (logits.empty()) return {};
  const double log_sum = LogSumExp(logits);
  std::vector<TokenScore> tokens;
  for (const int32_t id : Best(logits, top_k, targets)) {
    tokens.push_back({id, static_cast<float>(std::exp(logits[id] - log_sum))});
  }
  return tokens;
}

}  // namespace hippodrome
