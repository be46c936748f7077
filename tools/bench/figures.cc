#include "tools/bench/figures.h"

#include <algorithm>

namespace hippodrome {

std::string WeightsName(DType weights) { return weights == DType::kBF16 ? "bf16" : "f32"; }

BenchResult Rate(const TimedWork& work, const Cost& cost, DType weights, const Ceilings& ceilings) {
  const double least = LeastSeconds(cost, weights, ceilings);
  return {.name = work.name,
          .length = work.length,
          .batch = work.batch,
          .weights = WeightsName(weights),
          .value = work.tokens / work.seconds,
          .unit = "tokens/s",
          .limit = work.tokens / least,
          .fraction = least / work.seconds};
}

Shares SharesOf(const TimingBackend& timing, double seconds) {
  Shares shares = timing.seconds();
  double rest = seconds;
  for (auto& [operation, share] : shares) {
    rest -= share;
    share /= seconds;
  }
  shares["other"] = std::max(0.0, rest / seconds);
  return shares;
}

}  // namespace hippodrome
