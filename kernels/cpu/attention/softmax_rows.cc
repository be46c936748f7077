#include "kernels/cpu/attention/softmax_rows.h"

#include <algorithm>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention/softmax_rows.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "kernels/cpu/base/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hippodrome::cpu {
namespace HWY_NAMESPACE {

using D = HWY_CAPPED(float, 16);
using V = hn::Vec<D>;
constexpr int64_t kLanes = hn::MaxLanes(D());
static_assert(kScoreColumns % kLanes == 0 && kScoreBlock % kScoreColumns == 0);

// Calls body(i) where each vector of a row starts.
template <typename Body>
HWY_INLINE void ForVectors(int64_t visible, const Body& body) {
  for (int64_t first = 0; first < visible; first += kScoreBlock) {
    const int64_t count = std::min(kScoreBlock, visible - first);
    const int64_t columns = (count + kScoreColumns - 1) / kScoreColumns * kScoreColumns;
    for (int64_t i = 0; i < columns; i += kLanes) body(first * kScoreBlock + i);
  }
}

HWY_INLINE void HideRest(float* scores, int64_t visible) {
  const int64_t last = visible / kScoreBlock * kScoreBlock;
  const int64_t end = (visible + kScoreColumns - 1) / kScoreColumns * kScoreColumns;
  for (int64_t s = visible; s < end; ++s) {
    scores[last * kScoreBlock + s - last] = -std::numeric_limits<float>::infinity();
  }
}

float ExponentialRow(float* scores, int64_t visible) {
  const D d;
  HideRest(scores, visible);
  V highest = hn::Set(d, -std::numeric_limits<float>::infinity());
  ForVectors(visible, [&](int64_t i) { highest = hn::Max(highest, hn::LoadU(d, scores + i)); });
  const V max = hn::MaxOfLanes(d, highest);
  V sum = hn::Zero(d);
  ForVectors(visible, [&](int64_t i) {
    const V p = Exp(d, hn::Sub(hn::LoadU(d, scores + i), max));
    hn::StoreU(p, d, scores + i);
    sum = hn::Add(sum, p);
  });
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

void SoftmaxBackwardRow(float total, int64_t visible, float* p, float* dp) {
  const D d;
  const V scale = hn::Set(d, 1 / total);
  V sum = hn::Zero(d);
  ForVectors(visible, [&](int64_t i) {
    const V weight = hn::Mul(hn::LoadU(d, p + i), scale);
    hn::StoreU(weight, d, p + i);
    sum = hn::MulAdd(weight, hn::LoadU(d, dp + i), sum);
  });
  const V mean = hn::SumOfLanes(d, sum);
  ForVectors(visible, [&](int64_t i) {
    const V difference = hn::Sub(hn::LoadU(d, dp + i), mean);
    hn::StoreU(hn::Mul(hn::LoadU(d, p + i), difference), d, dp + i);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace hippodrome::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hippodrome::cpu {

HWY_EXPORT(ExponentialRow);
HWY_EXPORT(SoftmaxBackwardRow);

float ExponentialRow(float* scores, int64_t visible) {
  return HWY_DYNAMIC_DISPATCH(ExponentialRow)(scores, visible);
}

void SoftmaxBackwardRow(float total, int64_t visible, float* p, float* dp) {
  HWY_DYNAMIC_DISPATCH(SoftmaxBackwardRow)(total, visible, p, dp);
}

}  // namespace hippodrome::cpu
#endif  // HWY_ONCE
