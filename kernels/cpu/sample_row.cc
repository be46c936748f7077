#include "kernels/cpu/sample_row.h"

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/sample_row.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "kernels/cpu/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hippodrome::cpu {
namespace HWY_NAMESPACE {

using D = HWY_CAPPED(float, 16);
using D1 = HWY_CAPPED(float, 1);
using V = hn::Vec<D>;
constexpr int64_t kLanes = hn::MaxLanes(D());

float LargestLogit(const float* logits, int64_t n) {
  const D d;
  const V least = hn::Set(d, -std::numeric_limits<float>::infinity());
  V highest = least;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const V x = hn::LoadU(d, logits + i);
    highest = hn::Max(highest, hn::IfThenElse(hn::Eq(x, x), x, least));
  }
  float max = hn::GetLane(hn::MaxOfLanes(d, highest));
  for (; i < n; ++i) {
    if (logits[i] > max) max = logits[i];
  }
  return max;
}

// Infinite logits make inf - inf: equality with the maximum is tested apart.
template <class DV>
HWY_INLINE hn::Vec<DV> Weights(DV d, const float* logits, float max, float temperature) {
  const auto x = hn::LoadU(d, logits);
  const auto top = hn::Set(d, max);
  const auto scaled = hn::Div(hn::Sub(x, top), hn::Set(d, temperature));
  return hn::IfThenElse(hn::Eq(x, top), hn::Set(d, 1.0f), Exp(d, scaled));
}

double LogitWeights(const float* logits, int64_t n, float max, float temperature, float* weights) {
  const D d;
  double total = 0;
  int64_t i = 0;
  // Lanes add up in float over short runs only.
  constexpr int64_t kRun = 64;
  while (i + kLanes <= n) {
    V sum = hn::Zero(d);
    for (int64_t j = 0; j < kRun && i + kLanes <= n; ++j, i += kLanes) {
      const V w = Weights(d, logits + i, max, temperature);
      hn::StoreU(w, d, weights + i);
      sum = hn::Add(sum, w);
    }
    total += hn::GetLane(hn::SumOfLanes(d, sum));
  }
  for (; i < n; ++i) {
    weights[i] = hn::GetLane(Weights(D1(), logits + i, max, temperature));
    total += weights[i];
  }
  return total;
}

}  // namespace HWY_NAMESPACE
}  // namespace hippodrome::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hippodrome::cpu {

HWY_EXPORT(LargestLogit);
HWY_EXPORT(LogitWeights);

float LargestLogit(const float* logits, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(LargestLogit)(logits, n);
}

double LogitWeights(const float* logits, int64_t n, float max, float temperature, float* weights) {
  return HWY_DYNAMIC_DISPATCH(LogitWeights)(logits, n, max, temperature, weights);
}

}  // namespace hippodrome::cpu
#endif  // HWY_ONCE
