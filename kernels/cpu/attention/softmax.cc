#include "kernels/cpu/attention/softmax.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention/softmax.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "kernels/cpu/base/bf16_lanes-inl.h"
#include "kernels/cpu/base/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hippodrome::cpu {
namespace HWY_NAMESPACE {

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

template <typename T>
HWY_INLINE float Dot(const float* a, const T* b, int64_t n) {
  const D d;
  V sum0 = hn::Zero(d);
  V sum1 = hn::Zero(d);
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    sum0 = hn::MulAdd(hn::LoadU(d, a + i), LoadWide(d, b + i), sum0);
    sum1 = hn::MulAdd(hn::LoadU(d, a + i + kLanes), LoadWide(d, b + i + kLanes), sum1);
  }
  for (; i + kLanes <= n; i += kLanes) {
    sum0 = hn::MulAdd(hn::LoadU(d, a + i), LoadWide(d, b + i), sum0);
  }
  // With the operation of vectors: compilers may fuse it in one of the two types alone.
  const One one;
  auto sum = hn::Set(one, hn::GetLane(hn::SumOfLanes(d, hn::Add(sum0, sum1))));
  for (; i < n; ++i) sum = hn::MulAdd(hn::LoadU(one, a + i), LoadWide(one, b + i), sum);
  return hn::GetLane(sum);
}

// Into the second-level cache: the first has too few misses under way for what memory gives (20
// against 28 GB/s on two cores of a Zen 4).
template <typename T>
HWY_INLINE void Fetch(const T* row, int64_t n) {
  constexpr int64_t kLine = 64 / sizeof(T);
  for (int64_t i = 0; i < n; i += kLine) __builtin_prefetch(row + i, 0, 2);
}

template <typename T>
HWY_INLINE void ScoreRows(const float* q, const KeyRows<T>& rows, float* scores) {
  for (int64_t s = 0; s < rows.count; ++s) {
    Fetch(rows.keys[s] + rows.value_offset, rows.head_dim);
    scores[s] = Dot(q, rows.keys[s], rows.head_dim);
  }
}

void ScoreF32(const float* q, const KeyRows<float>& rows, float* scores) {
  ScoreRows(q, rows, scores);
}
void ScoreBF16(const float* q, const KeyRows<BF16>& rows, float* scores) {
  ScoreRows(q, rows, scores);
}

// Columns [column, column + kVectors * Lanes(d)) of the output, in registers.
template <int kVectors, class DV, typename T>
HWY_INLINE void AddColumns(DV d, const float* p, const KeyRows<T>& rows, int64_t column,
                           float factor, const KeyRows<T>& next, float* o) {
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
      sums[v] = hn::MulAdd(weight, LoadWide(d, rows.keys[s] + offset + v * lanes), sums[v]);
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) hn::StoreU(sums[v], d, o + column + v * lanes);
}

template <typename T>
HWY_INLINE void AddRows(const float* p, const KeyRows<T>& rows, float factor,
                        const KeyRows<T>& next, float* o) {
  int64_t column = 0;
  for (; column + 4 * kLanes <= rows.head_dim; column += 4 * kLanes) {
    AddColumns<4>(D(), p, rows, column, factor, next, o);
  }
  for (; column + kLanes <= rows.head_dim; column += kLanes) {
    AddColumns<1>(D(), p, rows, column, factor, next, o);
  }
  for (; column < rows.head_dim; ++column) {
    AddColumns<1>(One(), p, rows, column, factor, next, o);
  }
}

void AddF32(const float* p, const KeyRows<float>& rows, float factor, const KeyRows<float>& next,
            float* o) {
  AddRows(p, rows, factor, next, o);
}
void AddBF16(const float* p, const KeyRows<BF16>& rows, float factor, const KeyRows<BF16>& next,
             float* o) {
  AddRows(p, rows, factor, next, o);
}

void Scale(float factor, int64_t n, float* x) {
  for (int64_t i = 0; i < n; ++i) x[i] *= factor;
}

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

HWY_EXPORT(ExtendSoftmax);
HWY_EXPORT(ScoreF32);
HWY_EXPORT(ScoreBF16);
HWY_EXPORT(AddF32);
HWY_EXPORT(AddBF16);
HWY_EXPORT(Scale);
HWY_EXPORT(ExponentialRow);
HWY_EXPORT(SoftmaxBackwardRow);

void ExtendSoftmax(float* scores, int64_t rows, int64_t count, RunningSoftmax* softmax,
                   float* factors) {
  HWY_DYNAMIC_DISPATCH(ExtendSoftmax)(scores, rows, count, softmax, factors);
}

void ScoreKeys(const float* q, const KeyRows<float>& rows, float* scores) {
  HWY_DYNAMIC_DISPATCH(ScoreF32)(q, rows, scores);
}
void ScoreKeys(const float* q, const KeyRows<BF16>& rows, float* scores) {
  HWY_DYNAMIC_DISPATCH(ScoreBF16)(q, rows, scores);
}

void AddValues(const float* p, const KeyRows<float>& rows, float factor, const KeyRows<float>& next,
               float* o) {
  HWY_DYNAMIC_DISPATCH(AddF32)(p, rows, factor, next, o);
}
void AddValues(const float* p, const KeyRows<BF16>& rows, float factor, const KeyRows<BF16>& next,
               float* o) {
  HWY_DYNAMIC_DISPATCH(AddBF16)(p, rows, factor, next, o);
}

void Scale(float factor, int64_t n, float* x) { HWY_DYNAMIC_DISPATCH(Scale)(factor, n, x); }

float ExponentialRow(float* scores, int64_t visible) {
  return HWY_DYNAMIC_DISPATCH(ExponentialRow)(scores, visible);
}

void SoftmaxBackwardRow(float total, int64_t visible, float* p, float* dp) {
  HWY_DYNAMIC_DISPATCH(SoftmaxBackwardRow)(total, visible, p, dp);
}

}  // namespace hippodrome::cpu
#endif  // HWY_ONCE
