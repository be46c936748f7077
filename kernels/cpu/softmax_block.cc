#include "kernels/cpu/softmax_block.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/softmax_block.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "kernels/cpu/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hippodrome::cpu {
namespace HWY_NAMESPACE {

using D = HWY_CAPPED(float, 16);
using V = hn::Vec<D>;
constexpr int64_t kLanes = hn::MaxLanes(D());
static_assert(kKeyBlock % kLanes == 0);

float ExtendSoftmax(float* scores, int64_t count, RunningSoftmax& softmax) {
  if (count <= 0) {
    std::fill_n(scores, kKeyBlock, 0.0f);
    return 1;
  }
  const D d;
  std::fill(scores + count, scores + kKeyBlock, -std::numeric_limits<float>::infinity());
  V highest = hn::Set(d, softmax.max);
  for (int64_t s = 0; s < kKeyBlock; s += kLanes) {
    highest = hn::Max(highest, hn::LoadU(d, scores + s));
  }
  const V max = hn::MaxOfLanes(d, highest);
  V sum = hn::Zero(d);
  for (int64_t s = 0; s < kKeyBlock; s += kLanes) {
    const V p = Exp(d, hn::Sub(hn::LoadU(d, scores + s), max));
    hn::StoreU(p, d, scores + s);
    sum = hn::Add(sum, p);
  }
  const float factor = hn::GetLane(Exp(d, hn::Sub(hn::Set(d, softmax.max), max)));
  softmax.max = hn::GetLane(max);
  softmax.total = softmax.total * factor + hn::GetLane(hn::SumOfLanes(d, sum));
  return factor;
}

HWY_INLINE float Dot(const float* a, const float* b, int64_t n) {
  const D d;
  V sum0 = hn::Zero(d);
  V sum1 = hn::Zero(d);
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    sum0 = hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), sum0);
    sum1 = hn::MulAdd(hn::LoadU(d, a + i + kLanes), hn::LoadU(d, b + i + kLanes), sum1);
  }
  for (; i + kLanes <= n; i += kLanes) {
    sum0 = hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), sum0);
  }
  float sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(sum0, sum1)));
  for (; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

void ScoreKeys(const float* q, const float* const* keys, int64_t count, int64_t head_dim,
               float* scores) {
  for (int64_t s = 0; s < count; ++s) scores[s] = Dot(q, keys[s], head_dim);
}

// kVectors vectors of the output in registers.
template <int kVectors, class DV>
HWY_INLINE void AddColumns(DV d, const float* p, const float* const* keys, int64_t offset,
                           int64_t count, float factor, float* o) {
  const int64_t lanes = hn::Lanes(d);
  hn::Vec<DV> sums[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    sums[v] = hn::Mul(hn::LoadU(d, o + v * lanes), hn::Set(d, factor));
  }
  for (int64_t s = 0; s < count; ++s) {
    const auto weight = hn::Set(d, p[s]);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      sums[v] = hn::MulAdd(weight, hn::LoadU(d, keys[s] + offset + v * lanes), sums[v]);
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) hn::StoreU(sums[v], d, o + v * lanes);
}

void AddValues(const float* p, const float* const* keys, int64_t value_offset, int64_t count,
               int64_t head_dim, float factor, float* o) {
  int64_t i = 0;
  for (; i + 4 * kLanes <= head_dim; i += 4 * kLanes) {
    AddColumns<4>(D(), p, keys, value_offset + i, count, factor, o + i);
  }
  for (; i + kLanes <= head_dim; i += kLanes) {
    AddColumns<1>(D(), p, keys, value_offset + i, count, factor, o + i);
  }
  for (; i < head_dim; ++i) {
    AddColumns<1>(HWY_CAPPED(float, 1)(), p, keys, value_offset + i, count, factor, o + i);
  }
}

void Scale(float factor, int64_t n, float* x) {
  for (int64_t i = 0; i < n; ++i) x[i] *= factor;
}

}  // namespace HWY_NAMESPACE
}  // namespace hippodrome::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hippodrome::cpu {

HWY_EXPORT(ExtendSoftmax);
HWY_EXPORT(ScoreKeys);
HWY_EXPORT(AddValues);
HWY_EXPORT(Scale);

float ExtendSoftmax(float* scores, int64_t count, RunningSoftmax& softmax) {
  return HWY_DYNAMIC_DISPATCH(ExtendSoftmax)(scores, count, softmax);
}

void ScoreKeys(const float* q, const float* const* keys, int64_t count, int64_t head_dim,
               float* scores) {
  HWY_DYNAMIC_DISPATCH(ScoreKeys)(q, keys, count, head_dim, scores);
}

void AddValues(const float* p, const float* const* keys, int64_t value_offset, int64_t count,
               int64_t head_dim, float factor, float* o) {
  HWY_DYNAMIC_DISPATCH(AddValues)(p, keys, value_offset, count, head_dim, factor, o);
}

void Scale(float factor, int64_t n, float* x) { HWY_DYNAMIC_DISPATCH(Scale)(factor, n, x); }

}  // namespace hippodrome::cpu
#endif  // HWY_ONCE
