#include "engine/generation/speculation.h"

#include <algorithm>
#include <cmath>

namespace hippodrome {
namespace {

// Longer common ends promise no more.
constexpr int64_t kLongestMatch = 32;
constexpr double kLearning = 1.0 / 8;
constexpr double kForgetting = 1.0 / 64;

// Tokens that the texts before `a` and before `b` end with alike, kLongestMatch at most.
int64_t CommonEnd(std::span<const int32_t> tokens, int64_t a, int64_t b) {
  const int64_t most = std::min({a, b, kLongestMatch});
  int64_t count = 0;
  while (count < most && tokens[a - 1 - count] == tokens[b - 1 - count]) ++count;
  return count;
}

DraftBasis BasisOf(int64_t common) {
  if (common < 3) return common < 2 ? DraftBasis::kOneToken : DraftBasis::kTwoTokens;
  return common < 6 ? DraftBasis::kFewTokens : DraftBasis::kManyTokens;
}

}  // namespace

TokenDraft LookUpNext(std::span<const int32_t> tokens, int64_t most) {
  tokens = tokens.last(std::min<size_t>(tokens.size(), kSearchedTokens));
  const int64_t end = std::ssize(tokens);
  TokenDraft draft;
  int64_t found = 0;
  int64_t longest = 0;
  for (int64_t place = end - 1; place > 0 && longest < kLongestMatch; --place) {
    if (tokens[place - 1] != tokens[end - 1]) continue;
    const int64_t common = CommonEnd(tokens, place, end);
    if (common <= longest) continue;
    longest = common;
    found = place;
  }
  if (found == 0) return draft;
  draft.basis = BasisOf(longest);
  for (int64_t i = found; i < found + most; ++i) {
    draft.tokens.push_back(i < end ? tokens[i] : draft.tokens[i - end]);
  }
  return draft;
}

int64_t DraftLength::In(int64_t sequences, DraftBasis basis, double cost) const {
  const double rate = rates_[static_cast<size_t>(basis)];
  const auto n = static_cast<double>(sequences);
  const double least = n / (n + kRowsOfAStep) + cost;
  if (least >= 1) return 0;
  return rate < 1 ? static_cast<int64_t>(std::log(least) / std::log(rate)) : INT64_MAX;
}

void DraftLength::Learn(DraftBasis basis, int64_t drafted, int64_t accepted) {
  double& rate = rates_[static_cast<size_t>(basis)];
  for (int64_t i = 0; i < accepted; ++i) rate += kLearning * (1 - rate);
  if (accepted < drafted) rate -= kLearning * rate;
}

void DraftLength::Forget() {
  for (size_t i = 0; i < rates_.size(); ++i) {
    rates_[i] += kForgetting * (kFirstRates[i] - rates_[i]);
  }
}

}  // namespace hippodrome
