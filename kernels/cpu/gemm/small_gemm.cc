#include "kernels/cpu/gemm/small_gemm.h"

#include <cassert>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gemm/small_gemm.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "kernels/cpu/base/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hippodrome::cpu {
namespace HWY_NAMESPACE {

// 6 x 4 sums and the operands fill the 32 registers of AVX-512, 6 x 2 the 16 of earlier targets.
constexpr int kRows = kSmallGemmRows;
constexpr int kVectors = HWY_TARGET <= HWY_AVX3 ? 4 : 2;
// Fewer vectors are needed only where a vector is as wide as the unit of columns.
constexpr int kFewestVectors = kSmallGemmColumns == kLanes ? 1 : kVectors;
static_assert(kSmallGemmColumns % (kFewestVectors * kLanes) == 0);

// Rows [i, i + kR) and columns [j, j + kV kLanes).
template <int kR, int kV>
HWY_INLINE void Tile(const SmallGemmArguments& p, int64_t i, int64_t j) {
  const D d;
  float* const c = p.c + i * p.c_row + j;
  V sums[kR][kV];
#pragma GCC unroll 6
  for (int r = 0; r < kR; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kV; ++v) {
      sums[r][v] = p.accumulate ? hn::LoadU(d, c + r * p.c_row + v * kLanes) : hn::Zero(d);
    }
  }
  const int64_t a_row = p.a.row;
  const float* a = p.a.data + i * a_row;
  const float* b = p.b + j;
  for (int64_t k = 0; k < p.depth; ++k, a += p.a.step, b += p.b_row) {
    V columns[kV];
#pragma GCC unroll 4
    for (int v = 0; v < kV; ++v) columns[v] = hn::LoadU(d, b + v * kLanes);
#pragma GCC unroll 6
    for (int r = 0; r < kR; ++r) {
      const V x = hn::Set(d, a[r * a_row]);
#pragma GCC unroll 4
      for (int v = 0; v < kV; ++v) sums[r][v] = hn::MulAdd(x, columns[v], sums[r][v]);
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < kR; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kV; ++v) hn::StoreU(sums[r][v], d, c + r * p.c_row + v * kLanes);
  }
}

// All rows of some columns; those of the last tile are kLast or fewer.
template <int kV, int kLast = kRows - 1>
void LastRows(const SmallGemmArguments& p, int64_t i, int64_t j) {
  if constexpr (kLast > 0) {
    if (p.rows - i == kLast) return Tile<kLast, kV>(p, i, j);
    LastRows<kV, kLast - 1>(p, i, j);
  }
}

template <int kV>
void Columns(const SmallGemmArguments& p, int64_t j) {
  int64_t i = 0;
  for (; i + kRows <= p.rows; i += kRows) Tile<kRows, kV>(p, i, j);
  LastRows<kV>(p, i, j);
}

// Columns from j on, as many vectors at a time as there are.
template <int kV = kVectors>
void ColumnsFrom(const SmallGemmArguments& p, int64_t j) {
  for (; j + kV * kLanes <= p.cols; j += kV * kLanes) Columns<kV>(p, j);
  if constexpr (kV > kFewestVectors) ColumnsFrom<kV - 1>(p, j);
}

void SmallGemm(const SmallGemmArguments& product) { ColumnsFrom(product, 0); }

}  // namespace HWY_NAMESPACE
}  // namespace hippodrome::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hippodrome::cpu {

HWY_EXPORT(SmallGemm);

void SmallGemm(const SmallGemmArguments& product) {
  assert(product.cols % kSmallGemmColumns == 0);
  HWY_DYNAMIC_DISPATCH(SmallGemm)(product);
}

}  // namespace hippodrome::cpu
#endif  // HWY_ONCE
