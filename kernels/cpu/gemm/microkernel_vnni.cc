// The dot product of bytes of AVX-512 (VNNI). This Highway has no such operation, so this file is
// written for the one instruction set and asks the processor at run time.
#include "kernels/cpu/gemm/microkernel.h"
#include "kernels/cpu/gemm/packed_weights.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <cstring>

#define HIPPODROME_VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni")))

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

// `depth` groups of kRows rows. A tile of its own: for all that GCC knows, stores of vectors may
// change what is referred to.
template <int kRows, typename Panel>
HIPPODROME_VNNI void Tile(const QuantizedTile<Panel> tile) {
  FetchAhead ahead(tile.ahead);
  for (int64_t group = 0; group < tile.depth; ++group) {
    const RoundedGroup<int8_t, Panel>* const x = tile.a + group;
    const Panel& panel = tile.panel[group];
    Dots dots[kRows][kVectors];
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        dots[r][v] = (Dots)_mm512_set1_epi32(x[r * tile.a_stride].offset);
      }
    }
#pragma GCC unroll 4
    for (int64_t k = 0; k < Panel::kSteps; ++k) {
      ahead.Step();
#pragma GCC unroll 2
      for (int part = 0; part < Panel::kParts; ++part) {
        Dots weights[kVectors];
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) {
          weights[v] = (Dots)Part<Panel>(_mm512_loadu_si512(panel.values[k][v * kLanes]), part);
        }
#pragma GCC unroll 6
        for (int r = 0; r < kRows; ++r) {
          const int8_t* const four = x[r * tile.a_stride].values + 4 * (Panel::kParts * k + part);
          const __m512i values = Broadcast(four);
#pragma GCC unroll 4
          for (int v = 0; v < kVectors; ++v) {
            dots[r][v] =
                (Dots)_mm512_dpbusd_epi32((__m512i)dots[r][v], (__m512i)weights[v], values);
          }
        }
      }
    }
    ahead.Scales();
    const bool add = tile.accumulate || group > 0;
    __m512 scales[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const auto* bits = reinterpret_cast<const __m256i*>(panel.scales + v * kLanes);
      const __m512i wide = _mm512_maskz_cvtepu16_epi32(kAll, _mm256_loadu_si256(bits));
      scales[v] = _mm512_castsi512_ps(_mm512_maskz_slli_epi32(kAll, wide, 16));
    }
    // Row by row, as the last dot products end: what waits for others would fill the schedulers.
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      float* const sums = tile.sums + r * kPanelColumns;
      const __m512 scale = _mm512_set1_ps(x[r * tile.a_stride].scale);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        const __m512 product =
            _mm512_mul_ps(_mm512_maskz_cvtepi32_ps(kAll, (__m512i)dots[r][v]), scale);
        const __m512 before = add ? _mm512_loadu_ps(sums + v * kLanes) : _mm512_setzero_ps();
        _mm512_storeu_ps(sums + v * kLanes, _mm512_fmadd_ps(product, scales[v], before));
      }
    }
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
