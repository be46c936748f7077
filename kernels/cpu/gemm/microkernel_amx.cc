// Highway has no matrix registers, so this file is written for the one instruction set and asks the
// processor at run time.
#include "kernels/cpu/gemm/microkernel_amx.h"

#include "kernels/cpu/gemm/packed_weights.h"

#if defined(__x86_64__) && defined(__linux__)
#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 warns of values that its own intrinsics leave undefined (its bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HIPPODROME_AMX __attribute__((target("amx-tile,amx-bf16")))
#define HIPPODROME_INT8_AMX \
  __attribute__((target("amx-tile,amx-int8,avx512f,avx512bw,avx512vl,avx512vnni")))
#define HIPPODROME_BF16 __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))

namespace hippodrome::cpu {
namespace {

constexpr int64_t kTileStride = kAmxDepth * 2;             // bytes
constexpr int64_t kPanelStride = kPanelColumns * 4;        // of a panel and of sums, bytes
constexpr int64_t kPanelStep = kAmxDepth * kPanelColumns;  // elements
static_assert(2 * kPairBlock == kAmxDepth);

struct alignas(64) TileConfiguration {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfiguration) == 64);
constexpr TileConfiguration kConfiguration;

// A step's part of a panel, kFetchAhead bytes on, in the order of addresses, which the processor's
// own prefetching follows, as it does not the tiles' strides: memory then gives 13 GB/s instead of
// 10. Past the end of all panels nothing is there, which a prefetch may ask for.
constexpr uintptr_t kFetchAhead = 4096;
void FetchStep(const BF16* panel) {
  const uintptr_t first = reinterpret_cast<uintptr_t>(panel) + kFetchAhead;
  for (uintptr_t line = 0; line < kPanelStep * sizeof(BF16); line += 64) {
    __builtin_prefetch(reinterpret_cast<const void*>(first + line), 0, 3);
  }
}

constexpr unsigned kBF16Bit = 1u << 22;
constexpr unsigned kTileBit = 1u << 24;
constexpr unsigned kInt8Bit = 1u << 25;

// Whether the processor has all features of `bits`.
bool ProcessorHas(unsigned bits) {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & bits) == bits;
}

// The system saves the registers' contents only for processes that have asked.
bool SystemGrantsAmx() {
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;               // XFEATURE_XTILE_DATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

HIPPODROME_AMX void Configure() { _tile_loadconfig(&kConfiguration); }
HIPPODROME_AMX void Release() { _tile_release(); }

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

// The sums of a group over 32 columns, of one half of a panel.
using GroupDots = int32_t[kInt8AmxRows][kPanelColumns / 2];
constexpr int64_t kDotsStride = sizeof(int32_t) * kPanelColumns / 2;

// One group of all rows by 32 columns from `column` on: two steps of 64 inputs. Without kLower only
// 16 rows.
template <bool kLower>
HIPPODROME_INT8_AMX void MultiplyGroup(const QuantizedTile<Int8Panel>& tile, int64_t group,
                                       int64_t column, GroupDots& dots) {
  constexpr int64_t kSteps = Int8Panel::kSteps / kAmxRows;
  const int64_t stride = tile.a_stride * static_cast<int64_t>(sizeof(*tile.a));
  const auto* const upper = tile.a[group].values;
  const auto* const lower = tile.a[group + kAmxRows * tile.a_stride].values;
  _tile_zero(0);
  _tile_zero(1);
  if constexpr (kLower) {
    _tile_zero(2);
    _tile_zero(3);
  }
#pragma GCC unroll 2
  for (int64_t step = 0; step < kSteps; ++step) {
    const auto& weights = tile.panel[group].values[step * kAmxRows];
    _tile_loadd(4, upper + step * kTileStride, stride);
    _tile_loadd(6, weights[column], kPanelStride);
    _tile_loadd(7, weights[column + kAmxRows], kPanelStride);
    _tile_dpbsud(0, 4, 6);
    _tile_dpbsud(1, 4, 7);
    if constexpr (kLower) {
      _tile_loadd(5, lower + step * kTileStride, stride);
      _tile_dpbsud(2, 5, 6);
      _tile_dpbsud(3, 5, 7);
    }
  }
  _tile_stored(0, dots[0], kDotsStride);
  _tile_stored(1, dots[0] + kAmxRows, kDotsStride);
  if constexpr (kLower) {
    _tile_stored(2, dots[kAmxRows], kDotsStride);
    _tile_stored(3, dots[kAmxRows] + kAmxRows, kDotsStride);
  }
}

// sums += float(dots + offset) a.scale panel.scales, of 32 columns from `column` on.
HIPPODROME_INT8_AMX void AddGroup(const QuantizedTile<Int8Panel>& tile, int64_t group,
                                  int64_t column, const GroupDots& dots) {
  constexpr __mmask16 kAll = 0xffff;  // as in microkernel_vnni.cc
  const bool add = tile.accumulate || group > 0;
  for (int64_t c = 0; c < kPanelColumns / 2; c += kLanes) {
    const auto* bits = reinterpret_cast<const __m256i*>(tile.panel[group].scales + column + c);
    const __m512i wide = _mm512_maskz_cvtepu16_epi32(kAll, _mm256_loadu_si256(bits));
    const __m512 scale = _mm512_castsi512_ps(_mm512_maskz_slli_epi32(kAll, wide, 16));
    for (int64_t r = 0; r < tile.rows; ++r) {
      const RoundedGroup<int8_t, Int8Panel>& x = tile.a[r * tile.a_stride + group];
      float* const sum = tile.sums + r * kPanelColumns + column + c;
      const __m512i dot =
          _mm512_add_epi32(_mm512_load_si512(dots[r] + c), _mm512_set1_epi32(x.offset));
      const __m512 product =
          _mm512_mul_ps(_mm512_maskz_cvtepi32_ps(kAll, dot), _mm512_set1_ps(x.scale));
      const __m512 before = add ? _mm512_loadu_ps(sum) : _mm512_setzero_ps();
      _mm512_storeu_ps(sum, _mm512_fmadd_ps(product, scale, before));
    }
  }
}

}  // namespace

bool HaveAmx() {
  static const bool have = HaveBF16Dot() && ProcessorHas(kTileBit | kBF16Bit) && SystemGrantsAmx();
  return have;
}

bool HaveInt8Amx() {
  static const bool have = HaveInt8Dot() && ProcessorHas(kTileBit | kInt8Bit) && SystemGrantsAmx();
  return have;
}

AmxRegisters::AmxRegisters() { Configure(); }
AmxRegisters::~AmxRegisters() { Release(); }

HIPPODROME_AMX void MultiplyAmx32x32(const AmxBlock& block) {
  const BF16* upper = block.a;
  const BF16* lower = block.a + block.a_tile;
  const int64_t row = block.a_row * static_cast<int64_t>(sizeof(BF16));
  const BF16* panel = block.panel;
  float* const sums = block.sums;
  float* const below = sums + kAmxRows * kPanelColumns;
  if (block.accumulate) {
    _tile_loadd(0, sums, kPanelStride);
    _tile_loadd(1, sums + 16, kPanelStride);
    _tile_loadd(2, below, kPanelStride);
    _tile_loadd(3, below + 16, kPanelStride);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  for (int64_t step = 0; step < block.steps; ++step) {
    if (block.fetch) FetchStep(panel);
    _tile_loadd(4, upper, row);
    _tile_loadd(6, panel, kPanelStride);
    _tile_loadd(7, panel + kAmxDepth, kPanelStride);
    _tile_loadd(5, lower, row);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
    upper += block.a_step;
    lower += block.a_step;
    panel += kPanelStep;
  }
  _tile_stored(0, sums, kPanelStride);
  _tile_stored(1, sums + 16, kPanelStride);
  _tile_stored(2, below, kPanelStride);
  _tile_stored(3, below + 16, kPanelStride);
}

HIPPODROME_AMX void MultiplyAmx16x64(const AmxBlock& block) {
  const BF16* a = block.a;
  const int64_t row = block.a_row * static_cast<int64_t>(sizeof(BF16));
  const BF16* panel = block.panel;
  float* const sums = block.sums;
  if (block.accumulate) {
    _tile_loadd(0, sums, kPanelStride);
    _tile_loadd(1, sums + 16, kPanelStride);
    _tile_loadd(2, sums + 32, kPanelStride);
    _tile_loadd(3, sums + 48, kPanelStride);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  for (int64_t step = 0; step < block.steps; ++step) {
    if (block.fetch) FetchStep(panel);
    _tile_loadd(4, a, row);
    _tile_loadd(5, panel, kPanelStride);
    _tile_dpbf16ps(0, 4, 5);
    _tile_loadd(6, panel + kAmxDepth, kPanelStride);
    _tile_dpbf16ps(1, 4, 6);
    _tile_loadd(7, panel + 2 * kAmxDepth, kPanelStride);
    _tile_dpbf16ps(2, 4, 7);
    _tile_loadd(5, panel + 3 * kAmxDepth, kPanelStride);
    _tile_dpbf16ps(3, 4, 5);
    a += block.a_step;
    panel += kPanelStep;
  }
  _tile_stored(0, sums, kPanelStride);
  _tile_stored(1, sums + 16, kPanelStride);
  _tile_stored(2, sums + 32, kPanelStride);
  _tile_stored(3, sums + 48, kPanelStride);
}

void MicrokernelInt8Amx(const QuantizedTile<Int8Panel>& tile) {
  const auto multiply = tile.rows > kAmxRows ? MultiplyGroup<true> : MultiplyGroup<false>;
  alignas(64) GroupDots dots;
  for (int64_t column = 0; column < kPanelColumns; column += kPanelColumns / 2) {
    for (int64_t group = 0; group < tile.depth; ++group) {
      multiply(tile, group, column, dots);
      AddGroup(tile, group, column, dots);
    }
  }
}

HIPPODROME_BF16 void RoundToAmxTiles(const float* x, int64_t stride, int64_t rows, int64_t n,
                                     BF16* tiles) {
  for (int64_t k = 0; k < n; k += kAmxDepth, tiles += kAmxTile) {
    const auto count = static_cast<uint32_t>(n - k < kAmxDepth ? n - k : kAmxDepth);
    const uint32_t present = count == 32 ? ~0u : (1u << count) - 1;
    const auto low = static_cast<__mmask16>(present);
    const auto high = static_cast<__mmask16>(present >> 16);
    for (int64_t r = 0; r < rows; ++r) {
      const float* from = x + r * stride + k;
      const __m512 first = _mm512_maskz_loadu_ps(low, from);
      const __m512 second = _mm512_maskz_loadu_ps(high, from + kLanes);
      _mm512_storeu_si512(tiles + r * kAmxDepth, (__m512i)_mm512_cvtne2ps_pbh(second, first));
    }
  }
}

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

bool HaveAmx() { return false; }
bool HaveInt8Amx() { return false; }
AmxRegisters::AmxRegisters() = default;
AmxRegisters::~AmxRegisters() = default;
void MultiplyAmx32x32(const AmxBlock&) { assert(false); }
void MultiplyAmx16x64(const AmxBlock&) { assert(false); }
void MicrokernelInt8Amx(const QuantizedTile<Int8Panel>&) { assert(false); }
void RoundToAmxTiles(const float*, int64_t, int64_t, int64_t, BF16*) { assert(false); }
void StoreGradient(const GradientBlock&, const GradientTiles&) { assert(false); }

}  // namespace hippodrome::cpu
#endif
