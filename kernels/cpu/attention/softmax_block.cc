#include "kernels/cpu/attention/softmax_block.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention/softmax_block.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "kernels/cpu/base/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hippodrome::cpu {
namespace HWY_NAMESPACE {

using D = HWY_CAPPED(float, 16);
using V = hn::Vec<D>;
constexpr int64_t kLanes = hn::MaxLanes(D());
static_assert(kKeyBlock % kLanes == 0);

HWY_INLINE float ExtendRow(float* scores, int64_t count, RunningSoftmax& softmax) {
  const D d;
  for (int64_t s = std::max<int64_t>(count, 0); s < kKeyBlock; ++s) {
    scores[s] = -std::numeric_limits<float>::infinity();
  }
  if (count <= 0) {
    for (int64_t s = 0; s < kKeyBlock; ++s) scores[s] = 0;
    return 1;
  }
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

void ExtendSoftmax(float* scores, int64_t rows, int64_t count, RunningSoftmax* softmax,
                   float* factors) {
  for (int64_t r = 0; r < rows; ++r) {
    factors[r] = ExtendRow(scores + r * kKeyBlock, count + r, softmax[r]);
  }
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

HWY_INLINE void Fetch(const float* row, int64_t n) {
  for (int64_t i = 0; i < n; i += 16) __builtin_prefetch(row + i);
}

void ScoreKeys(const float* q, const KeyRows& rows, float* scores) {
  for (int64_t s = 0; s < rows.count; ++s) {
    Fetch(rows.keys[s] + rows.value_offset, rows.head_dim);
    scores[s] = Dot(q, rows.keys[s], rows.head_dim);
  }
}

// Columns [column, column + kVectors * Lanes(d)) of the output, in registers.
template <int kVectors, class DV>
HWY_INLINE void AddColumns(DV d, const float* p, const KeyRows& rows, int64_t column, float factor,
                           const KeyRows& next, float* o) {
  const int64_t lanes = hn::Lanes(d);
  const int64_t offset = rows.value_offset + column;
  hn::Vec<DV> sums[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    sums[v] = hn::Mul(hn::LoadU(d, o + column + v * lanes), hn::Set(d, factor));
  }
  for (int64_t s = 0; s < rows.count; ++s) {
    if (column == 0 && s < next.count) Fetch(next.keys[s], next.head_dim);
    const auto weight = hn::Set(d, p[s]);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      sums[v] = hn::MulAdd(weight, hn::LoadU(d, rows.keys[s] + offset + v * lanes), sums[v]);
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) hn::StoreU(sums[v], d, o + column + v * lanes);
}

void AddValues(const float* p, const KeyRows& rows, float factor, const KeyRows& next, float* o) {
  int64_t column = 0;
  for (; column + 4 * kLanes <= rows.head_dim; column += 4 * kLanes) {
    AddColumns<4>(D(), p, rows, column, factor, next, o);
  }
  for (; column + kLanes <= rows.head_dim; column += kLanes) {
    AddColumns<1>(D(), p, rows, column, factor, next, o);
  }
  for (; column < rows.head_dim; ++column) {
    AddColumns<1>(HWY_CAPPED(float, 1)(), p, rows, column, factor, next, o);
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

void ExtendSoftmax(float* scores, int64_t rows, int64_t count, RunningSoftmax* softmax,
                   float* factors) {
  HWY_DYNAMIC_DISPATCH(ExtendSoftmax)(scores, rows, count, softmax, factors);
}

void ScoreKeys(const float* q, const KeyRows& rows, float* scores) {
  HWY_DYNAMIC_DISPATCH(ScoreKeys)(q, rows, scores);
}

void AddValues(const float* p, const KeyRows& rows, float factor, const KeyRows& next, float* o) {
  HWY_DYNAMIC_DISPATCH(AddValues)(p, rows, factor, next, o);
}

void Scale(float factor, int64_t n, float* x) { HWY_DYNAMIC_DISPATCH(Scale)(factor, n, x); }

}  // namespace hippodrome::cpu
#endif  // HWY_ONCE
