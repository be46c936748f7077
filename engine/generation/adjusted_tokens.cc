#include "engine/generation/adjusted_tokens.h"

#include <algorithm>

namespace hippodrome {

AdjustedTokens::AdjustedTokens(const LogitChanges& changes, std::span<const int32_t> prompt)
    : changes_{.bias = {},
               .repetition_penalty = changes.repetition_penalty,
               .presence_penalty = changes.presence_penalty,
               .frequency_penalty = changes.frequency_penalty} {
  std::vector<int32_t> tokens;
  for (const TokenBias& b : changes.bias) tokens.push_back(b.token);
  if (changes_.repetition_penalty != 1) tokens.insert(tokens.end(), prompt.begin(), prompt.end());
  std::sort(tokens.begin(), tokens.end());
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  for (const int32_t token : tokens) adjustments_.push_back({.token = token});
  uses_.resize(tokens.size());
  for (const TokenBias& b : changes.bias) {
    const size_t place = Place(b.token);
    adjustments_[place].addend = uses_[place].bias = b.bias;
  }
  if (changes_.repetition_penalty == 1) return;
  for (const int32_t token : prompt) {
    adjustments_[Place(token)].repetition = changes_.repetition_penalty;
  }
}

size_t AdjustedTokens::Place(int32_t token) {
  const auto found =
      std::lower_bound(adjustments_.begin(), adjustments_.end(), token,
                       [](const LogitAdjustment& a, int32_t value) { return a.token < value; });
  const auto place = found - adjustments_.begin();
  if (found == adjustments_.end() || found->token != token) {
    adjustments_.insert(found, {.token = token});
    uses_.insert(uses_.begin() + place, Use{});
  }
  return static_cast<size_t>(place);
}

void AdjustedTokens::Append(int32_t token) {
  if (!changes_.penalises()) return;
  const size_t place = Place(token);
  Use& use = uses_[place];
  ++use.count;
  adjustments_[place].repetition = changes_.repetition_penalty;
  adjustments_[place].addend = use.bias - changes_.presence_penalty -
                               changes_.frequency_penalty * static_cast<float>(use.count);
}

}  // namespace hippodrome
