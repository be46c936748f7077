// The likeliest tokens in the place of [MASK].
#ifndef HIPPODROME_ENGINE_TASKS_FILL_MASK_H_
#define HIPPODROME_ENGINE_TASKS_FILL_MASK_H_

#include <cstdint>
#include <span>
#include <vector>

namespace hippodrome {

struct TokenScore {
  int32_t id = 0;
  float score = 0;  // probability among all tokens
};

// The `top_k` likeliest of `targets` (of all tokens if empty), best first, the smallest id among
// equals. logits: [V]. REQUIRES: targets in [0, V).
std::vector<TokenScore> LikeliestTokens(std::span<const float> logits, int64_t top_k,
                                        std::span<const int32_t> targets = {});

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_TASKS_FILL_MASK_H_
