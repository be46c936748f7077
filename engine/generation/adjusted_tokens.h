// The logits of one sequence that its biases and penalties change.
#ifndef HIPPODROME_ENGINE_GENERATION_ADJUSTED_TOKENS_H_
#define HIPPODROME_ENGINE_GENERATION_ADJUSTED_TOKENS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "engine/sampling.h"
#include "kernels/backend.h"

namespace hippodrome {

// Follows a sequence, as LogitChanges says.
class AdjustedTokens {
 public:
  AdjustedTokens(const LogitChanges& changes, std::span<const int32_t> prompt);

  // A new token.
  void Append(int32_t token);
  // In ascending order of tokens; valid until the next Append().
  std::span<const LogitAdjustment> adjustments() const { return adjustments_; }

 private:
  // What the addend of an adjustment is made of.
  struct Use {
    float bias = 0;
    int64_t count = 0;  // among the new tokens
  };

  // The place of a token, which is made if there is none.
  size_t Place(int32_t token);

  LogitChanges changes_;  // but for the biases
  std::vector<LogitAdjustment> adjustments_;
  std::vector<Use> uses_;  // of adjustments_
};

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_GENERATION_ADJUSTED_TOKENS_H_
