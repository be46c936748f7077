// MicrokernelF32, MicrokernelBF16Plain and RoundToBF16Plain for every vector width.
#include "kernels/cpu/gemm/microkernel.h"

#include <type_traits>

#include "kernels/cpu/gemm/packed_weights.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gemm/microkernel.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "kernels/cpu/base/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hippodrome::cpu {
namespace HWY_NAMESPACE {

using Bits = hn::RebindToUnsigned<D>;

// Vectors across a tile: as many as the registers hold beside the operands, 32 of them with AVX-512
// and 16 before it, where low tiles are made wider to have enough chains in flight.
constexpr int VectorsAcross(int rows) {
  if (HWY_TARGET <= HWY_AVX3) return 4;
  return rows == 1 ? 8 : rows <= 3 ? 4 : 2;
}

// Element `part` of the elements that share 32 bits in a panel: the float itself, or a bf16 pair's.
template <typename W>
HWY_INLINE V Expand(V bits, int part) {
  if constexpr (sizeof(W) == sizeof(float)) {
    return bits;
  } else {
    const auto pair = hn::BitCast(Bits(), bits);
    const auto high = hn::Set(Bits(), 0xffff0000u);
    return hn::BitCast(D(), part == 0 ? hn::ShiftLeft<16>(pair) : hn::And(pair, high));
  }
}

// VectorsAcross(kRows) vectors of columns of a tile of kRows rows.
template <int kRows, typename W>
HWY_INLINE void Block(const MicrokernelArguments<float, W>& tile, int64_t column) {
  constexpr int kParts = std::is_same_v<W, float> ? 1 : 2;
  constexpr int kVectors = VectorsAcross(kRows);
  const D d;
  float* const out = tile.sums + column;
  V sums[kRows][kVectors];
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      sums[r][v] =
          tile.accumulate ? hn::LoadU(d, out + r * tile.sums_stride + v * kLanes) : hn::Zero(d);
    }
  }
  const float* w = reinterpret_cast<const float*>(tile.panel) + column;
  const float* a = tile.a;
  // The first block of columns fetches for all.
  FetchAhead ahead(column == 0 ? tile.ahead : LinesAhead{});
  for (int64_t k = 0; k < tile.depth; ++k, a += kParts, w += kPanelColumns) {
    ahead.Step();
    V packed[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) packed[v] = hn::LoadU(d, w + v * kLanes);
#pragma GCC unroll 2
    for (int part = 0; part < kParts; ++part) {
#pragma GCC unroll 6
      for (int r = 0; r < kRows; ++r) {
        const V x = hn::Set(d, a[r * tile.a_stride + part]);
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) {
          sums[r][v] = hn::MulAdd(x, Expand<W>(packed[v], part), sums[r][v]);
        }
      }
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      hn::StoreU(sums[r][v], d, out + r * tile.sums_stride + v * kLanes);
    }
  }
}

template <int kRows, typename W>
void Tile(const MicrokernelArguments<float, W>& tile) {
  constexpr int64_t kColumns = VectorsAcross(kRows) * kLanes;
  static_assert(kPanelColumns % kColumns == 0);
  for (int64_t column = 0; column < kPanelColumns; column += kColumns) {
    Block<kRows, W>(tile, column);
  }
}

template <typename W>
HWY_INLINE void TileOfRows(const MicrokernelArguments<float, W>& tile) {
  ForRows(tile.rows, [&](auto rows) { Tile<rows, W>(tile); });
}

void MicrokernelF32(const MicrokernelArguments<float, float>& tile) { TileOfRows(tile); }
void MicrokernelBF16(const MicrokernelArguments<float, BF16>& tile) { TileOfRows(tile); }

void ExpandPairs(const BF16* panel, int64_t depth, float* expanded) {
  const D d;
  const float* w = reinterpret_cast<const float*>(panel);
  for (int64_t k = 0; k < depth; ++k, w += kPanelColumns, expanded += 2 * kPanelColumns) {
    for (int64_t c = 0; c < kPanelColumns; c += kLanes) {
      const V packed = hn::LoadU(d, w + c);
      hn::StoreU(Expand<BF16>(packed, 0), d, expanded + c);
      hn::StoreU(Expand<BF16>(packed, 1), d, expanded + kPanelColumns + c);
    }
  }
}

// As ToBF16() for each element: half of the last place that stays is added, a little less where
// that place is even, and the lower half is cut off.
void RoundToBF16(const float* x, int64_t n, float* rounded) {
  const D d;
  const Bits bits_of;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const V value = hn::LoadU(d, x + i);
    const auto bits = hn::BitCast(bits_of, value);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(bits_of, 1));
    const auto sum = hn::Add(bits, hn::Add(odd, hn::Set(bits_of, 0x7fff)));
    const V near = hn::BitCast(d, hn::And(sum, hn::Set(bits_of, 0xffff0000u)));
    hn::StoreU(hn::IfThenElse(hn::IsNaN(value), value, near), d, rounded + i);
  }
  for (; i < n; ++i) rounded[i] = ToFloat(ToBF16(x[i]));
  if (n % 2 != 0) rounded[n] = 0;
}

}  // namespace HWY_NAMESPACE
}  // namespace hippodrome::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hippodrome::cpu {

HWY_EXPORT(MicrokernelF32);
HWY_EXPORT(MicrokernelBF16);
HWY_EXPORT(ExpandPairs);
HWY_EXPORT(RoundToBF16);

void MicrokernelF32(const MicrokernelArguments<float, float>& tile) {
  HWY_DYNAMIC_DISPATCH(MicrokernelF32)(tile);
}
void MicrokernelBF16Plain(const MicrokernelArguments<float, BF16>& tile) {
  HWY_DYNAMIC_DISPATCH(MicrokernelBF16)(tile);
}

void ExpandPairs(const BF16* panel, int64_t depth, float* expanded) {
  HWY_DYNAMIC_DISPATCH(ExpandPairs)(panel, depth, expanded);
}

void RoundToBF16Plain(const float* x, int64_t n, float* rounded) {
  HWY_DYNAMIC_DISPATCH(RoundToBF16)(x, n, rounded);
}

}  // namespace hippodrome::cpu
#endif  // HWY_ONCE
