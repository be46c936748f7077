#include "kernels/cpu/rows/sample_row.h"

#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/rows/sample_row.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "kernels/cpu/base/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hippodrome::cpu {
namespace HWY_NAMESPACE {

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

// The sum of value(d, i) over [0, n). Lanes add up in float over short runs only.
template <class Value>
HWY_INLINE double Sum(int64_t n, const Value& value) {
  const D d;
  constexpr int64_t kRun = 64 * kLanes;
  double total = 0;
  int64_t i = 0;
  while (i + kLanes <= n) {
    V sum = hn::Zero(d);
    for (const int64_t end = i + kRun; i < end && i + kLanes <= n; i += kLanes) {
      sum = hn::Add(sum, value(d, i));
    }
    total += hn::GetLane(hn::SumOfLanes(d, sum));
  }
  for (; i < n; ++i) total += hn::GetLane(value(One(), i));
  return total;
}

double LogitWeights(const float* logits, int64_t n, float max, float temperature, float* weights) {
  return Sum(n, [&](auto d, int64_t i) HWY_ATTR {
    const auto w = Weights(d, logits + i, max, temperature);
    hn::StoreU(w, d, weights + i);
    return w;
  });
}

double SumAtLeast(const float* weights, int64_t n, float floor) {
  return Sum(n, [&](auto d, int64_t i) HWY_ATTR {
    const auto w = hn::LoadU(d, weights + i);
    return hn::IfThenElseZero(hn::Ge(w, hn::Set(d, floor)), w);
  });
}

std::vector<int32_t> FindBetween(const float* values, int64_t n, float floor, float ceiling) {
  const D d;
  const V least = hn::Set(d, floor);
  const V most = hn::Set(d, ceiling);
  std::vector<int32_t> found;
  const auto collect = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (values[i] >= floor && values[i] <= ceiling) found.push_back(static_cast<int32_t>(i));
    }
  };
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const V v = hn::LoadU(d, values + i);
    if (!hn::AllFalse(d, hn::And(hn::Ge(v, least), hn::Le(v, most)))) collect(i, i + kLanes);
  }
  collect(i, n);
  return found;
}

}  // namespace HWY_NAMESPACE
}  // namespace hippodrome::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hippodrome::cpu {

HWY_EXPORT(LargestLogit);
HWY_EXPORT(LogitWeights);
HWY_EXPORT(SumAtLeast);
HWY_EXPORT(FindBetween);

float LargestLogit(const float* logits, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(LargestLogit)(logits, n);
}

double LogitWeights(const float* logits, int64_t n, float max, float temperature, float* weights) {
  return HWY_DYNAMIC_DISPATCH(LogitWeights)(logits, n, max, temperature, weights);
}

double SumAtLeast(const float* weights, int64_t n, float floor) {
  return HWY_DYNAMIC_DISPATCH(SumAtLeast)(weights, n, floor);
}

std::vector<int32_t> FindBetween(const float* values, int64_t n, float floor, float ceiling) {
  return HWY_DYNAMIC_DISPATCH(FindBetween)(values, n, floor, ceiling);
}

}  // namespace hippodrome::cpu
#endif  // HWY_ONCE
