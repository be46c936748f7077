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

HWY_INLINE void ScaleRow(float* x, int64_t n, float factor) {
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
  ScaleRow(logits, n, static_cast<float>(scale / sum));
  logits[label] -= static_cast<float>(scale);
  return static_cast<float>(std::log(sum) + distance);
}

static_assert(kSoftmaxLanes % kLanes == 0);

HWY_INLINE void Extend(V logits, V& largest, V& sum) {
  const D d;
  const V most = hn::Max(largest, logits);
  sum = hn::MulAdd(sum, Exp(d, hn::Sub(largest, most)), Exp(d, hn::Sub(logits, most)));
  largest = most;
}

HWY_INLINE void ExtendTwice(V first, V second, V& largest, V& sum) {
  const D d;
  const V most = hn::Max(largest, hn::Max(first, second));
  const V added = hn::Add(Exp(d, hn::Sub(first, most)), Exp(d, hn::Sub(second, most)));
  sum = hn::MulAdd(sum, Exp(d, hn::Sub(largest, most)), added);
  largest = most;
}

void ExtendSoftmaxLanes(float* logits, const float* bias, int64_t n, SoftmaxLanes& lanes) {
  const D d;
  V largest = hn::LoadU(d, lanes.largest);
  V sum = hn::LoadU(d, lanes.sum);
  const auto logit = [&](int64_t i) {
    if (bias == nullptr) return hn::LoadU(d, logits + i);
    const V biased = hn::Add(hn::LoadU(d, logits + i), hn::LoadU(d, bias + i));
    hn::StoreU(biased, d, logits + i);
    return biased;
  };
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    ExtendTwice(logit(i), logit(i + kLanes), largest, sum);
  }
  for (; i + kLanes <= n; i += kLanes) Extend(logit(i), largest, sum);
  if (i < n) {
    float rest[kSoftmaxLanes];
    std::fill_n(rest, kSoftmaxLanes, kNoLogit);
    for (int64_t j = i; j < n; ++j) {
      if (bias != nullptr) logits[j] += bias[j];
      rest[j - i] = logits[j];
    }
    Extend(hn::LoadU(d, rest), largest, sum);
  }
  hn::StoreU(largest, d, lanes.largest);
  hn::StoreU(sum, d, lanes.sum);
}

template <class DV>
HWY_INLINE void ReplaceVector(DV d, float* logits, const float* bias, float largest, float factor) {
  auto logit = hn::LoadU(d, logits);
  if (bias != nullptr) logit = hn::Add(logit, hn::LoadU(d, bias));
  const auto e = Exp(d, hn::Sub(logit, hn::Set(d, largest)));
  hn::StoreU(hn::Mul(e, hn::Set(d, factor)), d, logits);
}

void ReplaceByProbabilities(float* logits, const float* bias, int64_t n, float largest,
                            float factor) {
  const auto bias_at = [bias](int64_t i) { return bias == nullptr ? nullptr : bias + i; };
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    ReplaceVector(D(), logits + i, bias_at(i), largest, factor);
  }
  for (; i < n; ++i) ReplaceVector(One(), logits + i, bias_at(i), largest, factor);
}

}  // namespace HWY_NAMESPACE
}  // namespace hippodrome::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hippodrome::cpu {

HWY_EXPORT(SoftmaxLoss);
HWY_EXPORT(ExtendSoftmaxLanes);
HWY_EXPORT(ReplaceByProbabilities);

float SoftmaxLoss(float* logits, int64_t n, int32_t label, double scale) {
  assert(n > 0 && label >= -1 && label < n);
  if (label >= 0) return HWY_DYNAMIC_DISPATCH(SoftmaxLoss)(logits, n, label, scale);
  std::fill_n(logits, n, 0.0f);
  return 0;
}

void ExtendSoftmaxLanes(float* logits, const float* bias, int64_t n, SoftmaxLanes& lanes) {
  HWY_DYNAMIC_DISPATCH(ExtendSoftmaxLanes)(logits, bias, n, lanes);
}

SoftmaxTotal SumSoftmaxLanes(const SoftmaxLanes* parts, int64_t count, int64_t stride) {
  SoftmaxTotal total = {.largest = kNoLogit, .sum = 0};
  for (int64_t i = 0; i < count; ++i) {
    for (float largest : parts[i * stride].largest) {
      total.largest = std::max(total.largest, double{largest});
    }
  }
  for (int64_t i = 0; i < count; ++i) {
    const SoftmaxLanes& part = parts[i * stride];
    for (int64_t lane = 0; lane < kSoftmaxLanes; ++lane) {
      if (part.sum[lane] == 0) continue;
      total.sum += part.sum[lane] * std::exp(double{part.largest[lane]} - total.largest);
    }
  }
  return total;
}

void ReplaceByProbabilities(float* logits, const float* bias, int64_t n, float largest,
                            float factor) {
  HWY_DYNAMIC_DISPATCH(ReplaceByProbabilities)(logits, bias, n, largest, factor);
}

}  // namespace hippodrome::cpu
#endif  // HWY_ONCE
