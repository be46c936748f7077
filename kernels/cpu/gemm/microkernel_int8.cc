// MicrokernelInt8Plain, and the rounding of activations, for every vector width.
#include <cstring>

#include "kernels/cpu/gemm/microkernel.h"
#include "kernels/cpu/gemm/packed_weights.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gemm/microkernel_int8.cc"
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

// kVectors vectors of columns of a group.
template <int kRows, int kVectors>
HWY_INLINE void Block(const MicrokernelArguments<Int16Group, Int8Panel>& tile, int64_t group,
                      int64_t column, const char*& next) {
  const D d;
  const Integers di;
  const Int8Panel& panel = tile.panel[group];
  const Int16Group* const x = tile.a + group;
  VI dots[kRows][kVectors];
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) dots[r][v] = hn::Set(di, x[r * tile.a_stride].offset);
  }
  const VI bytes = hn::Set(di, 0x00ff00ff);
  for (int64_t k = 0; k < kInt8Group / 4; ++k) {
    if (column == 0) FetchAhead(next, tile.next_lines);
    VI even[kVectors], odd[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const auto* from = reinterpret_cast<const int32_t*>(panel.values[k][column + v * kLanes]);
      const VI packed = hn::LoadU(di, from);
      even[v] = hn::And(packed, bytes);
      odd[v] = hn::And(hn::ShiftRight<8>(packed), bytes);
    }
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      const int16_t* values = x[r * tile.a_stride].values + 4 * k;
      const VI x_even = Broadcast(values), x_odd = Broadcast(values + 2);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        dots[r][v] = AddPairProducts(odd[v], x_odd, AddPairProducts(even[v], x_even, dots[r][v]));
      }
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

template <int kRows>
void Tile(const MicrokernelArguments<Int16Group, Int8Panel>& tile) {
  constexpr int kVectors = VectorsAcross(kRows);
  static_assert(kPanelColumns % (kVectors * kLanes) == 0);
  const char* next = static_cast<const char*>(tile.next);
  for (int64_t group = 0; group < tile.depth; ++group) {
    for (int64_t column = 0; column < kPanelColumns; column += kVectors * kLanes) {
      Block<kRows, kVectors>(tile, group, column, next);
    }
    FetchAhead(next, LinesOfScales(tile.next_lines));
  }
}

void MicrokernelInt8(const MicrokernelArguments<Int16Group, Int8Panel>& tile) {
  ForRows(tile.rows, [&](auto rows) { Tile<rows>(tile); });
}

// max |x_k|; a NaN where there is one.
HWY_INLINE float Largest(const float* x) {
  const D d;
  const Integers di;
  // Without their signs floats are in the order of their bits, and NaNs above all.
  VI largest = hn::Zero(di);
  for (int64_t k = 0; k < kInt8Group; k += kLanes) {
    largest = hn::Max(largest, hn::BitCast(di, hn::Abs(hn::LoadU(d, x + k))));
  }
  const int32_t bits = hn::GetLane(hn::MaxOfLanes(di, largest));
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

HWY_INLINE void RoundGroup(const float* x, Int8Group& group) {
  const D d;
  const Integers di;
  const Int8Scale scale = ActivationScale(Largest(x));
  group = {.values = {}, .scale = scale.scale, .offset = 0};
  if (scale.inverse == 0) return;
  VI sum = hn::Zero(di);
  for (int64_t k = 0; k < kInt8Group; k += kLanes) {
    const V value = hn::Mul(hn::LoadU(d, x + k), hn::Set(d, scale.inverse));
    const VI near = hn::NearestInt(value);
    sum = hn::Add(sum, near);
    const hn::Rebind<int8_t, Integers> bytes;
    hn::StoreU(hn::DemoteTo(bytes, near), bytes, group.values + k);
  }
  group.offset = -128 * hn::GetLane(hn::SumOfLanes(di, sum));
}

void RoundToInt8(const float* x, int64_t n, Int8Group* groups) {
  for (; n >= kInt8Group; n -= kInt8Group, x += kInt8Group) RoundGroup(x, *groups++);
  if (n == 0) return;
  float last[kInt8Group] = {};
  std::memcpy(last, x, static_cast<size_t>(n) * sizeof(float));
  RoundGroup(last, *groups);
}

}  // namespace HWY_NAMESPACE
}  // namespace hippodrome::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hippodrome::cpu {

HWY_EXPORT(MicrokernelInt8);
HWY_EXPORT(RoundToInt8);

void MicrokernelInt8Plain(const MicrokernelArguments<Int16Group, Int8Panel>& tile) {
  HWY_DYNAMIC_DISPATCH(MicrokernelInt8)(tile);
}

void RoundToInt8(const float* x, int64_t n, Int8Group* groups) {
  HWY_DYNAMIC_DISPATCH(RoundToInt8)(x, n, groups);
}

void RoundToInt16(const float* x, int64_t n, Int16Group* groups) {
  for (int64_t g = 0; g < Int8Groups(n); ++g) {
    Int8Group rounded;
    RoundToInt8(x + g * kInt8Group, std::min(n - g * kInt8Group, kInt8Group), &rounded);
    groups[g] = {.values = {}, .scale = rounded.scale, .offset = rounded.offset};
    for (int64_t k = 0; k < kInt8Group; k += 4) {
      for (int64_t i = 0; i < 4; ++i)
        groups[g].values[k + i / 2 + i % 2 * 2] = rounded.values[k + i];
    }
  }
}

}  // namespace hippodrome::cpu
#endif  // HWY_ONCE
