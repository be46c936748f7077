#include "kernels/cpu/training/softmax_loss.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/training/softmax_loss.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "kernels/cpu/base/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hippodrome::cpu {
namespace HWY_NAMESPACE {

HWY_INLINE float Largest(const float* x, int64_t n) {
  const D d;
  float largest = x[0];
  int64_t i = 0;
  if (n >= kLanes) {
    V most = hn::LoadU(d, x);
    for (i = kLanes; i + kLanes <= n; i += kLanes) most = hn::Max(most, hn::LoadU(d, x + i));
    largest = hn::GetLane(hn::MaxOfLanes(d, most));
  }
  for (; i < n; ++i) largest = std::max(largest, x[i]);
  return largest;
}

// x = exp(x - shift); gives the sum.
HWY_INLINE float Exponentials(float* x, int64_t n, float shift) {
  const D d;
  V sum = hn::Zero(d);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const V e = Exp(d, hn::Sub(hn::LoadU(d, x + i), hn::Set(d, shift)));
    hn::StoreU(e, d, x + i);
    sum = hn::Add(sum, e);
  }
  float total = hn::GetLane(hn::SumOfLanes(d, sum));
  for (; i < n; ++i) {
    x[i] = hn::GetLane(Exp(One(), hn::Set(One(), x[i] - shift)));
    total += x[i];
  }
  return total;
}

HWY_INLINE void Multiply(float* x, int64_t n, float factor) {
  const D d;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    hn::StoreU(hn::Mul(hn::LoadU(d, x + i), hn::Set(d, factor)), d, x + i);
  }
  for (; i < n; ++i) x[i] *= factor;
}

float SoftmaxLoss(float* logits, int64_t n, int32_t label, double scale) {
  const float largest = Largest(logits, n);
  const double distance = double{largest} - double{logits[label]};
  const double sum = Exponentials(logits, n, largest);
  Multiply(logits, n, static_cast<float>(scale / sum));
  logits[label] -= static_cast<float>(scale);
  return static_cast<float>(std::log(sum) + distance);
}

}  // namespace HWY_NAMESPACE
}  // namespace hippodrome::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hippodrome::cpu {

HWY_EXPORT(SoftmaxLoss);

float SoftmaxLoss(float* logits, int64_t n, int32_t label, double scale) {
  assert(n > 0 && label >= -1 && label < n);
  if (label >= 0) return HWY_DYNAMIC_DISPATCH(SoftmaxLoss)(logits, n, label, scale);
  std::fill_n(logits, n, 0.0f);
  return 0;
}

}  // namespace hippodrome::cpu
#endif  // HWY_ONCE
