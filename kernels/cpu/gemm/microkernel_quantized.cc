// MicrokernelQuantizedPlain, and the rounding of activations, for every vector width.
#include <algorithm>
#include <cstring>

#include "kernels/cpu/gemm/microkernel.h"
#include "kernels/cpu/gemm/packed_weights.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gemm/microkernel_quantized.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "kernels/cpu/base/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hippodrome::cpu {
namespace HWY_NAMESPACE {

using Integers = hn::RebindToSigned<D>;
using VI = hn::Vec<Integers>;

// sum + the products of the upper and of the lower halves of each lane, signed.
HWY_INLINE VI AddPairProducts(VI a, VI b, VI sum) {
  const Integers d;
#if HWY_ARCH_X86 && HWY_TARGET != HWY_EMU128 && HWY_TARGET != HWY_SCALAR
  const hn::Repartition<int16_t, Integers> halves;
  VI unused = hn::Zero(d);
  return hn::ReorderWidenMulAccumulate(d, hn::BitCast(halves, a), hn::BitCast(halves, b), sum,
                                       unused);
#else
  const auto low = [](VI x) { return hn::ShiftRight<16>(hn::ShiftLeft<16>(x)); };
  const auto high = [](VI x) { return hn::ShiftRight<16>(x); };
  (void)d;
  return hn::Add(sum, hn::Add(hn::Mul(low(a), low(b)), hn::Mul(high(a), high(b))));
#endif
}

HWY_INLINE VI Broadcast(const int16_t* pair) {
  int32_t bits;
  std::memcpy(&bits, pair, sizeof(bits));
  return hn::Set(Integers(), bits);
}

// Vectors across a tile: the sums of all rows and the operands fit the registers.
constexpr int VectorsAcross(int rows) {
  if (HWY_TARGET <= HWY_AVX3) return 4;
  return rows <= 3 ? 4 : 2;
}

// dots += the products of part kPart of the integers at `from`, with groups of x from `values` on.
template <int kRows, int kVectors, int kPart, typename Panel>
HWY_INLINE void AddPart(const int32_t* from, const int16_t* values, int64_t stride,
                        VI (&dots)[kRows][kVectors]) {
  constexpr int kShift = 4 * kPart;
  const Integers di;
  const VI bits = hn::Set(di, (2 * Panel::kOffset - 1) * 0x00010001);
  VI even[kVectors], odd[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    const VI packed = hn::LoadU(di, from + v * kLanes);
    even[v] = hn::And(hn::ShiftRight<kShift>(packed), bits);
    odd[v] = hn::And(hn::ShiftRight<kShift + 8>(packed), bits);
  }
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r, values += stride) {
    const VI x_even = Broadcast(values), x_odd = Broadcast(values + 2);
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      dots[r][v] = AddPairProducts(odd[v], x_odd, AddPairProducts(even[v], x_even, dots[r][v]));
    }
  }
}

// kVectors vectors of columns of a group.
template <int kRows, int kVectors, typename Panel>
HWY_INLINE void Block(const PlainQuantizedTile<Panel>& tile, int64_t group, int64_t column,
                      FetchAhead& ahead) {
  const D d;
  const Integers di;
  const Panel& panel = tile.panel[group];
  const RoundedGroup<int16_t, Panel>* const x = tile.a + group;
  VI dots[kRows][kVectors];
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) dots[r][v] = hn::Set(di, x[r * tile.a_stride].offset);
  }
  // From one row's values to the next one's.
  const int64_t row = tile.a_stride * static_cast<int64_t>(sizeof(*x) / sizeof(int16_t));
  for (int64_t k = 0; k < Panel::kSteps; ++k) {
    if (column == 0) ahead.Step();
    const int16_t* const values = x->values + 4 * Panel::kParts * k;
    const auto* from = reinterpret_cast<const int32_t*>(panel.values[k][column]);
    AddPart<kRows, kVectors, 0, Panel>(from, values, row, dots);
    if constexpr (Panel::kParts == 2) {
      AddPart<kRows, kVectors, 1, Panel>(from, values + 4, row, dots);
    }
  }
  const bool add = tile.accumulate || group > 0;
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    const int64_t first = column + v * kLanes;
    const hn::Rebind<uint16_t, Integers> half;
    const auto bits = hn::LoadU(half, reinterpret_cast<const uint16_t*>(panel.scales) + first);
    const V scale = hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(di, bits)));
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      float* const sum = tile.sums + r * kPanelColumns + first;
      const V product =
          hn::Mul(hn::ConvertTo(d, dots[r][v]), hn::Set(d, x[r * tile.a_stride].scale));
      hn::StoreU(hn::MulAdd(product, scale, add ? hn::LoadU(d, sum) : hn::Zero(d)), d, sum);
    }
  }
}

template <int kRows, typename Panel>
void Tile(const PlainQuantizedTile<Panel>& tile) {
  constexpr int kVectors = VectorsAcross(kRows);
  static_assert(kPanelColumns % (kVectors * kLanes) == 0);
  FetchAhead ahead(tile.ahead);
  for (int64_t group = 0; group < tile.depth; ++group) {
    for (int64_t column = 0; column < kPanelColumns; column += kVectors * kLanes) {
      Block<kRows, kVectors>(tile, group, column, ahead);
    }
    ahead.Scales();
  }
}

void MicrokernelInt8(const PlainQuantizedTile<Int8Panel>& tile) {
  ForRows(tile.rows, [&](auto rows) { Tile<rows>(tile); });
}
void MicrokernelInt4(const PlainQuantizedTile<Int4Panel>& tile) {
  ForRows(tile.rows, [&](auto rows) { Tile<rows>(tile); });
}

// max |x_k| of `count` values; a NaN where there is one.
HWY_INLINE float Largest(const float* x, int64_t count) {
  const D d;
  const Integers di;
  // Without their signs floats are in the order of their bits, and NaNs above all.
  VI largest = hn::Zero(di);
  for (int64_t k = 0; k < count; k += kLanes) {
    largest = hn::Max(largest, hn::BitCast(di, hn::Abs(hn::LoadU(d, x + k))));
  }
  const int32_t bits = hn::GetLane(hn::MaxOfLanes(di, largest));
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// The nearest integers of values that are in their range, which AVX-512 need not ask again: with
// the packs below, rounding takes half as long.
HWY_INLINE VI Nearest(V values) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  return VI{_mm512_cvtps_epi32(values.raw)};
#else
  return hn::NearestInt(values);
#endif
}

// The integers of some vectors, each of which fits a byte, as bytes in their order.
template <int kVectors>
HWY_INLINE void StoreBytes(const VI (&integers)[kVectors], int8_t* to) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  // All vectors share the packs, of which each lane of 128 bits has a part, and the permutation.
  static_assert(kVectors == 2 || kVectors == 4);
  const auto pack = [&](int v) { return _mm512_packs_epi32(integers[v].raw, integers[v + 1].raw); };
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const __m512i quarters = _mm512_packs_epi16(pack(0), pack(kVectors - 2));
  const __m512i bytes = _mm512_permutexvar_epi32(order, quarters);
  std::memcpy(to, &bytes, kVectors * kLanes);
#else
  for (int v = 0; v < kVectors; ++v, to += kLanes) {
    const hn::Rebind<int8_t, Integers> bytes;
    hn::StoreU(hn::DemoteTo(bytes, integers[v]), bytes, to);
  }
#endif
}

template <typename Panel>
HWY_INLINE void RoundGroup(const float* x, RoundedGroup<int8_t, Panel>& group) {
  constexpr int kTogether = std::min<int>(4, Panel::kGroup / kLanes);
  const D d;
  const Integers di;
  const GroupScale scale = ActivationScale(Largest(x, Panel::kGroup));
  group.scale = scale.scale;
  group.offset = 0;
  if (scale.inverse == 0) {
    std::fill_n(group.values, Panel::kGroup, int8_t{0});
    return;
  }
  VI sum = hn::Zero(di);
  for (int64_t k = 0; k < Panel::kGroup; k += kTogether * kLanes) {
    VI near[kTogether];
    for (int v = 0; v < kTogether; ++v) {
      const V value = hn::LoadU(d, x + k + v * kLanes);
      near[v] = Nearest(hn::Mul(value, hn::Set(d, scale.inverse)));
      sum = hn::Add(sum, near[v]);
    }
    StoreBytes(near, group.values + k);
  }
  group.offset = -Panel::kOffset * hn::GetLane(hn::SumOfLanes(di, sum));
}

template <typename Panel>
HWY_INLINE void RoundGroups(const float* x, int64_t n, RoundedGroup<int8_t, Panel>* groups) {
  for (; n >= Panel::kGroup; n -= Panel::kGroup, x += Panel::kGroup) RoundGroup(x, *groups++);
  if (n == 0) return;
  float last[Panel::kGroup] = {};
  std::memcpy(last, x, static_cast<size_t>(n) * sizeof(float));
  RoundGroup(last, *groups);
}

void RoundForInt8(const float* x, int64_t n, RoundedGroup<int8_t, Int8Panel>* groups) {
  RoundGroups(x, n, groups);
}
void RoundForInt4(const float* x, int64_t n, RoundedGroup<int8_t, Int4Panel>* groups) {
  RoundGroups(x, n, groups);
}

}  // namespace HWY_NAMESPACE
}  // namespace hippodrome::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hippodrome::cpu {

HWY_EXPORT(MicrokernelInt8);
HWY_EXPORT(MicrokernelInt4);
HWY_EXPORT(RoundForInt8);
HWY_EXPORT(RoundForInt4);

template <>
void MicrokernelQuantizedPlain(const PlainQuantizedTile<Int8Panel>& tile) {
  HWY_DYNAMIC_DISPATCH(MicrokernelInt8)(tile);
}
template <>
void MicrokernelQuantizedPlain(const PlainQuantizedTile<Int4Panel>& tile) {
  HWY_DYNAMIC_DISPATCH(MicrokernelInt4)(tile);
}

template <>
void RoundToInt8(const float* x, int64_t n, RoundedGroup<int8_t, Int8Panel>* groups) {
  HWY_DYNAMIC_DISPATCH(RoundForInt8)(x, n, groups);
}
template <>
void RoundToInt8(const float* x, int64_t n, RoundedGroup<int8_t, Int4Panel>* groups) {
  HWY_DYNAMIC_DISPATCH(RoundForInt4)(x, n, groups);
}

template <typename Panel>
void RoundToInt16(const float* x, int64_t n, RoundedGroup<int16_t, Panel>* groups) {
  for (int64_t begin = 0; begin < n; begin += Panel::kGroup, ++groups) {
    RoundedGroup<int8_t, Panel> rounded;
    RoundToInt8(x + begin, std::min(n - begin, Panel::kGroup), &rounded);
    *groups = {.values = {}, .scale = rounded.scale, .offset = rounded.offset};
    for (int64_t k = 0; k < Panel::kGroup; k += 4) {
      for (int64_t i = 0; i < 4; ++i) groups->values[k + i / 2 + i % 2 * 2] = rounded.values[k + i];
    }
  }
}

template void RoundToInt16(const float* x, int64_t n, RoundedGroup<int16_t, Int8Panel>* groups);
template void RoundToInt16(const float* x, int64_t n, RoundedGroup<int16_t, Int4Panel>* groups);

}  // namespace hippodrome::cpu
#endif  // HWY_ONCE
