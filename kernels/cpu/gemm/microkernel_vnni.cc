// The dot product of bytes of AVX-512 (VNNI). This Highway has no such operation, so this file is
// written for the one instruction set and asks the processor at run time.
#include "kernels/cpu/gemm/microkernel.h"
#include "kernels/cpu/gemm/packed_weights.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <cstring>

#define HIPPODROME_VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni")))
#define HIPPODROME_VNNI_INLINE HIPPODROME_VNNI inline __attribute__((always_inline))

namespace hippodrome::cpu {
namespace {

constexpr int kLanes = 16;
constexpr int kVectors = kPanelColumns / kLanes;

// All lanes of an operation under a mask: without one, GCC takes what the operation leaves behind
// for an uninitialised value.
constexpr __mmask16 kAll = 0xffff;

// Sums in registers: GCC keeps arrays of the intrinsics' own type, __m512i, in memory.
using Dots = __v16si;

// Four values in every lane.
HIPPODROME_VNNI inline __m512i Broadcast(const int8_t* values) {
  int32_t bits;
  std::memcpy(&bits, values, sizeof(bits));
  return _mm512_set1_epi32(bits);
}

// Part `part` of the integers that share bytes.
template <typename Panel>
HIPPODROME_VNNI inline __m512i Part(__m512i bytes, int part) {
  if constexpr (Panel::kParts == 1) {
    return bytes;
  } else {
    const __m512i shifted = part == 0 ? bytes : _mm512_maskz_srli_epi32(kAll, bytes, 4);
    return _mm512_and_si512(shifted, _mm512_set1_epi8(2 * Panel::kOffset - 1));
  }
}

// A group of each row of a tile, and of the panel.
template <typename Panel>
struct GroupOfTile {
  const RoundedGroup<int8_t, Panel>* x;
  int64_t x_stride;
  const Panel* panel;

  const RoundedGroup<int8_t, Panel>& Row(int r) const { return x[r * x_stride]; }
};

template <typename Panel>
HIPPODROME_VNNI_INLINE void LoadWeights(const GroupOfTile<Panel>& group, int64_t k, int part,
                                        Dots (&weights)[kVectors]) {
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    weights[v] = (Dots)Part<Panel>(_mm512_loadu_si512(group.panel->values[k][v * kLanes]), part);
  }
}

// dots += a row's products with the weights of part `part` of step k.
template <typename Panel>
HIPPODROME_VNNI_INLINE void MultiplyRow(const GroupOfTile<Panel>& group, int r, int64_t k, int part,
                                        const Dots (&weights)[kVectors], Dots (&dots)[kVectors]) {
  const __m512i values = Broadcast(group.Row(r).values + 4 * (Panel::kParts * k + part));
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    dots[v] = (Dots)_mm512_dpbusd_epi32((__m512i)dots[v], (__m512i)weights[v], values);
  }
}

// The first part of step 0.
template <typename Panel>
HIPPODROME_VNNI_INLINE void BeginRow(const GroupOfTile<Panel>& group, int r,
                                     const Dots (&weights)[kVectors], Dots (&dots)[kVectors]) {
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) dots[v] = (Dots)_mm512_set1_epi32(group.Row(r).offset);
  MultiplyRow(group, r, 0, 0, weights, dots);
}

// The parts of step k from `part` on.
template <int kRows, typename Panel>
HIPPODROME_VNNI_INLINE void MultiplyStep(const GroupOfTile<Panel>& group, int64_t k, int part,
                                         Dots (&dots)[kRows][kVectors]) {
#pragma GCC unroll 2
  for (; part < Panel::kParts; ++part) {
    Dots weights[kVectors];
    LoadWeights(group, k, part, weights);
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) MultiplyRow(group, r, k, part, weights, dots[r]);
  }
}

template <typename Panel>
HIPPODROME_VNNI_INLINE void WidenScales(const Panel& panel, float* scales) {
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    const auto* bits = reinterpret_cast<const __m256i*>(panel.scales + v * kLanes);
    const __m512i wide = _mm512_maskz_cvtepu16_epi32(kAll, _mm256_loadu_si256(bits));
    _mm512_store_si512(scales + v * kLanes, _mm512_maskz_slli_epi32(kAll, wide, 16));
  }
}

// sums = (add ? sums : 0) + what a row's group gives.
template <typename Panel>
HIPPODROME_VNNI_INLINE void EndRow(const GroupOfTile<Panel>& group, int r, const float* scales,
                                   bool add, const Dots (&dots)[kVectors], float* sums) {
  const __m512 scale = _mm512_set1_ps(group.Row(r).scale);
  sums += r * kPanelColumns;
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    const __m512 product = _mm512_mul_ps(_mm512_maskz_cvtepi32_ps(kAll, (__m512i)dots[v]), scale);
    const __m512 before = add ? _mm512_loadu_ps(sums + v * kLanes) : _mm512_setzero_ps();
    const __m512 of_panel = _mm512_load_ps(scales + v * kLanes);
    _mm512_storeu_ps(sums + v * kLanes, _mm512_fmadd_ps(product, of_panel, before));
  }
}

// `depth` >= 1 groups of kRows rows. A tile of its own: for all that GCC knows, stores of vectors
// may change what is referred to.
template <int kRows, typename Panel>
HIPPODROME_VNNI void Tile(const QuantizedTile<Panel> tile) {
  FetchAhead ahead(tile.ahead);
  GroupOfTile<Panel> group = {tile.a, tile.a_stride, tile.panel};
  Dots dots[kRows][kVectors];
  Dots weights[kVectors];
  LoadWeights(group, 0, 0, weights);
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) BeginRow(group, r, weights, dots[r]);
  bool add = tile.accumulate;
  for (int64_t left = tile.depth;;) {
    ahead.Step();
    MultiplyStep<kRows>(group, 0, 1, dots);
    for (int64_t k = 1; k < Panel::kSteps; ++k) {
      ahead.Step();
      MultiplyStep<kRows>(group, k, 0, dots);
    }
    ahead.Scales();
    alignas(64) float scales[kPanelColumns];
    WidenScales(*group.panel, scales);
    if (--left == 0) {
#pragma GCC unroll 6
      for (int r = 0; r < kRows; ++r) EndRow(group, r, scales, add, dots[r], tile.sums);
      return;
    }
    // The next group's first products between the rows: there is always something to multiply, for
    // 3 to 4 % more a second of 8 bits on a Zen 5.
    const GroupOfTile<Panel> next = {group.x + 1, group.x_stride, group.panel + 1};
    LoadWeights(next, 0, 0, weights);
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      EndRow(group, r, scales, add, dots[r], tile.sums);
      BeginRow(next, r, weights, dots[r]);
    }
    group = next;
    add = true;
  }
}

}  // namespace

bool HaveInt8Dot() {
  static const bool have = __builtin_cpu_supports("avx512vnni") != 0 &&
                           __builtin_cpu_supports("avx512bw") != 0 &&
                           __builtin_cpu_supports("avx512vl") != 0;
  return have;
}

template <typename Panel>
void MicrokernelQuantizedDot(const QuantizedTile<Panel>& tile) {
  ForRows(tile.rows, [&](auto rows) { Tile<rows>(tile); });
}

template void MicrokernelQuantizedDot(const QuantizedTile<Int8Panel>& tile);
template void MicrokernelQuantizedDot(const QuantizedTile<Int4Panel>& tile);

}  // namespace hippodrome::cpu

#else

#include <cassert>

namespace hippodrome::cpu {

bool HaveInt8Dot() { return false; }
template <typename Panel>
void MicrokernelQuantizedDot(const QuantizedTile<Panel>&) {
  assert(false);
}

template void MicrokernelQuantizedDot(const QuantizedTile<Int8Panel>&);
template void MicrokernelQuantizedDot(const QuantizedTile<Int4Panel>&);

}  // namespace hippodrome::cpu
#endif
