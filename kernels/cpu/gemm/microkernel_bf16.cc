// The bf16 dot product of AVX-512. Highway has no such operation, so this file is written for the
// one instruction set and asks the processor at run time.
#include "kernels/cpu/gemm/microkernel.h"
#include "kernels/cpu/gemm/packed_weights.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <cstring>

#define HIPPODROME_BF16 __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))

namespace hippodrome::cpu {
namespace {

constexpr int kLanes = 16;
constexpr int kVectors = kPanelColumns / kLanes;

// A pair of bf16 values in every lane.
HIPPODROME_BF16 inline __m512bh Broadcast(const BF16* pair) {
  int32_t bits;
  std::memcpy(&bits, pair, sizeof(bits));
  return (__m512bh)_mm512_set1_epi32(bits);
}

template <int kRows>
HIPPODROME_BF16 void Tile(const MicrokernelArguments<BF16, BF16>& tile) {
  __m512 sums[kRows][kVectors];
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      sums[r][v] = tile.accumulate ? _mm512_loadu_ps(tile.sums + r * tile.sums_stride + v * kLanes)
                                   : _mm512_setzero_ps();
    }
  }
  const BF16* a = tile.a;
  const BF16* w = tile.panel;
  FetchAhead ahead(tile.ahead);
  for (int64_t k = 0; k < tile.depth; ++k, a += 2, w += 2 * kPanelColumns) {
    ahead.Step();
    __m512bh weights[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      weights[v] = (__m512bh)_mm512_loadu_si512(w + v * 2 * kLanes);
    }
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      const __m512bh x = Broadcast(a + r * tile.a_stride);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sums[r][v] = _mm512_dpbf16_ps(sums[r][v], x, weights[v]);
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      _mm512_storeu_ps(tile.sums + r * tile.sums_stride + v * kLanes, sums[r][v]);
    }
  }
}

}  // namespace

bool HaveBF16Dot() {
  static const bool have = __builtin_cpu_supports("avx512bf16") != 0 &&
                           __builtin_cpu_supports("avx512bw") != 0 &&
                           __builtin_cpu_supports("avx512vl") != 0;
  return have;
}

bool FastBF16Dot() {
  static const bool fast = HaveBF16Dot() && __builtin_cpu_is("intel") == 0;
  return fast;
}

void MicrokernelBF16Dot(const MicrokernelArguments<BF16, BF16>& tile) {
  ForRows(tile.rows, [&](auto rows) { Tile<rows>(tile); });
}

HIPPODROME_BF16 void RoundToBF16Dot(const float* x, int64_t n, BF16* rounded) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const __m256i bits = (__m256i)_mm512_cvtneps_pbh(_mm512_loadu_ps(x + i));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(rounded + i), bits);
  }
  for (; i < n; ++i) rounded[i] = ToBF16(x[i]);
  if (n % 2 != 0) rounded[n] = BF16{};
}

}  // namespace hippodrome::cpu

#else

#include <cassert>

namespace hippodrome::cpu {

bool HaveBF16Dot() { return false; }
bool FastBF16Dot() { return false; }
void MicrokernelBF16Dot(const MicrokernelArguments<BF16, BF16>&) { assert(false); }
void RoundToBF16Dot(const float*, int64_t, BF16*) { assert(false); }

}  // namespace hippodrome::cpu
#endif
