// For processors with AMX, which have AVX-512.
#include "kernels/cpu/gemm/gradient_tiles.h"

#include "kernels/cpu/gemm/microkernel_amx.h"

#if defined(__x86_64__)
#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 warns of values that its own intrinsics leave undefined (its bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

#define HIPPODROME_BF16 __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))

namespace hippodrome::cpu {
namespace {

constexpr int64_t kLanes = 16;

HIPPODROME_BF16 inline __mmask16 Mask(int64_t count) {
  return count >= kLanes ? 0xffff : count <= 0 ? 0 : static_cast<__mmask16>((1u << count) - 1);
}

// The transposition of 16 rows of 16 words: first within 128 bits, then of those.
HIPPODROME_BF16 inline void Transpose(__m512i r[16]) {
  __m512i t[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m512i a = _mm512_shuffle_i32x4(r[i], r[i + 4], 0x88);
    const __m512i b = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0x88);
    const __m512i c = _mm512_shuffle_i32x4(r[i], r[i + 4], 0xdd);
    const __m512i d = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0xdd);
    r[i] = _mm512_shuffle_i32x4(a, b, 0x88);
    r[i + 8] = _mm512_shuffle_i32x4(a, b, 0xdd);
    r[i + 4] = _mm512_shuffle_i32x4(c, d, 0x88);
    r[i + 12] = _mm512_shuffle_i32x4(c, d, 0xdd);
  }
}

// Two rows of 16 rounded values as pairs, the first in the low halves.
HIPPODROME_BF16 inline __m512i Pairs(__m512 first, __m512 second) {
  const __m512i low = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(first));
  const __m512i high = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(second));
  return _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
}

// 16 columns from `column` on: 32 rows become 16 rows of pairs, and these a tile.
HIPPODROME_BF16 void StoreColumns(const GradientBlock& block, int64_t column, BF16* tile,
                                  float* sums) {
  const __mmask16 mask = Mask(block.cols - column);
  const auto row = [&](int64_t r) HIPPODROME_BF16 {
    const __mmask16 present = r < block.rows ? mask : 0;
    return _mm512_maskz_loadu_ps(present, block.values + r * block.stride + column);
  };
  __m512i pairs[kLanes];
  __m512 sum = _mm512_setzero_ps();
#pragma GCC unroll 16
  for (int64_t p = 0; p < kLanes; ++p) {
    const __m512 first = row(2 * p);
    const __m512 second = row(2 * p + 1);
    sum = _mm512_add_ps(_mm512_add_ps(sum, first), second);
    pairs[p] = Pairs(first, second);
  }
  const __m512 before = _mm512_maskz_loadu_ps(mask, sums + column);
  _mm512_mask_storeu_ps(sums + column, mask, _mm512_add_ps(before, sum));
  Transpose(pairs);
#pragma GCC unroll 16
  for (int64_t c = 0; c < kLanes; ++c) _mm512_storeu_si512(tile + c * kAmxDepth, pairs[c]);
}

}  // namespace

void StoreGradient(const GradientBlock& block, const GradientTiles& tiles) {
  for (int64_t r = 0; r < block.rows; r += kAmxRows) {
    const int64_t rows = block.rows - r < kAmxRows ? block.rows - r : kAmxRows;
    RoundToAmxTiles(block.values + r * block.stride, block.stride, rows, block.cols,
                    tiles.rows[r / kAmxRows]);
  }
  for (int64_t i = 0; i < 2; ++i) StoreColumns(block, i * kLanes, tiles.columns[i], tiles.sums);
}

}  // namespace hippodrome::cpu

#else

#include <cassert>

namespace hippodrome::cpu {

void StoreGradient(const GradientBlock&, const GradientTiles&) { assert(false); }

}  // namespace hippodrome::cpu
#endif
