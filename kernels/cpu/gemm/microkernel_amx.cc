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

// The start of a step's 4 KiB of a panel, a step ahead: the processor's own prefetching, which
// stops at the borders of pages, goes on from there. Asking for all of it occupies what loads from
// the second-level cache need: 32 rows then take 23 GB/s of weights instead of 25, of 30 on two
// cores. Past the end of all panels nothing is there, which a prefetch may ask for.
constexpr uintptr_t kFetchedBytes = 1024;
void FetchStep(const BF16* panel) {
  const uintptr_t first = reinterpret_cast<uintptr_t>(panel + kPanelStep);
  for (uintptr_t line = 0; line < kFetchedBytes; line += 64) {
    __builtin_prefetch(reinterpret_cast<const void*>(first + line), 0, 2);
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

// The sums of a group: 16 rows by a panel's columns.
using GroupDots = int32_t[kAmxRows][kPanelColumns];

// Up to 16 rows of a group, by a panel.
struct GroupPiece {
  const RoundedGroup<int8_t, Int8Panel>* x;
  int64_t x_stride;
  const Int8Panel* panel;
  int64_t rows;
  bool add;     // to sums that are there
  float* sums;  // [rows][64]
};

constexpr int kVectors = kPanelColumns / kLanes;
constexpr __mmask16 kAll = 0xffff;  // as in microkernel_vnni.cc

HIPPODROME_INT8_AMX inline __m512 LoadScales(const GroupPiece& piece, int vector) {
  const auto* bits = reinterpret_cast<const __m256i*>(piece.panel->scales + vector * kLanes);
  const __m512i wide = _mm512_maskz_cvtepu16_epi32(kAll, _mm256_loadu_si256(bits));
  return _mm512_castsi512_ps(_mm512_maskz_slli_epi32(kAll, wide, 16));
}

// sums = (add ? sums : 0) + float(dots + offset) x.scale scales, of rows [begin, begin + 2). A
// piece of its own: for all that GCC knows, stores of vectors may change what is referred to.
HIPPODROME_INT8_AMX inline void AddRows(const GroupPiece piece, const GroupDots& dots,
                                        const __m512 (&scales)[kVectors], int64_t begin) {
  const __mmask16 add = piece.add ? kAll : 0;
#pragma GCC unroll 2
  for (int64_t r = begin; r < begin + 2; ++r) {
    if (r >= piece.rows) return;
    const RoundedGroup<int8_t, Int8Panel>& x = piece.x[r * piece.x_stride];
    const __m512i offset = _mm512_set1_epi32(x.offset);
    const __m512 scale = _mm512_set1_ps(x.scale);
    float* const sums = piece.sums + r * kPanelColumns;
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const __m512i dot = _mm512_add_epi32(_mm512_load_si512(dots[r] + v * kLanes), offset);
      const __m512 product = _mm512_mul_ps(_mm512_maskz_cvtepi32_ps(kAll, dot), scale);
      const __m512 before = _mm512_maskz_loadu_ps(add, sums + v * kLanes);
      _mm512_storeu_ps(sums + v * kLanes, _mm512_fmadd_ps(product, scales[v], before));
    }
  }
}

// Takes the dot products of a piece, and between the instructions for that scales and adds those of
// the piece before: the processor itself reaches only a few instructions past matrix products. The
// new dot products are stored last, since loads wait for earlier stores whose addresses end alike.
HIPPODROME_INT8_AMX void MultiplyPiece(const GroupPiece piece, const GroupPiece before,
                                       GroupDots& dots) {
  static_assert(Int8Panel::kSteps == 2 * kAmxRows && kVectors == 4);
  __m512 scales[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) scales[v] = LoadScales(before, v);
  const int64_t stride = piece.x_stride * static_cast<int64_t>(sizeof(*piece.x));
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
#pragma GCC unroll 2
  for (int64_t step = 0; step < 2; ++step) {
    const auto& weights = piece.panel->values[step * kAmxRows];
    _tile_loadd(4, piece.x->values + step * kTileStride, stride);
    _tile_loadd(5, weights[0], kPanelStride);
    _tile_dpbsud(0, 4, 5);
    AddRows(before, dots, scales, 8 * step);
    _tile_loadd(6, weights[kAmxRows], kPanelStride);
    _tile_dpbsud(1, 4, 6);
    AddRows(before, dots, scales, 8 * step + 2);
    _tile_loadd(7, weights[2 * kAmxRows], kPanelStride);
    _tile_dpbsud(2, 4, 7);
    AddRows(before, dots, scales, 8 * step + 4);
    _tile_loadd(5, weights[3 * kAmxRows], kPanelStride);
    _tile_dpbsud(3, 4, 5);
    AddRows(before, dots, scales, 8 * step + 6);
  }
  _tile_stored(0, dots[0], kPanelStride);
  _tile_stored(1, dots[0] + kAmxRows, kPanelStride);
  _tile_stored(2, dots[0] + 2 * kAmxRows, kPanelStride);
  _tile_stored(3, dots[0] + 3 * kAmxRows, kPanelStride);
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

HIPPODROME_AMX void MultiplyAmxTile(const AmxBlock& block) {
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

HIPPODROME_INT8_AMX void MicrokernelInt8Amx(const QuantizedTile<Int8Panel>& tile) {
  alignas(64) GroupDots dots;
  GroupPiece before = {.x = tile.a, .panel = tile.panel, .rows = 0};
  for (int64_t group = 0; group < tile.depth; ++group) {
    for (int64_t row = 0; row < tile.rows; row += kAmxRows) {
      const GroupPiece piece = {.x = tile.a + row * tile.a_stride + group,
                                .x_stride = tile.a_stride,
                                .panel = tile.panel + group,
                                .rows = tile.rows - row < kAmxRows ? tile.rows - row : kAmxRows,
                                .add = tile.accumulate || group > 0,
                                .sums = tile.sums + row * kPanelColumns};
      MultiplyPiece(piece, before, dots);
      before = piece;
    }
  }
  __m512 scales[kVectors];
  for (int v = 0; v < kVectors; ++v) scales[v] = LoadScales(before, v);
  for (int64_t row = 0; row < before.rows; row += 2) AddRows(before, dots, scales, row);
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
void MultiplyAmxTile(const AmxBlock&) { assert(false); }
void MicrokernelInt8Amx(const QuantizedTile<Int8Panel>&) { assert(false); }
void RoundToAmxTiles(const float*, int64_t, int64_t, int64_t, BF16*) { assert(false); }
void StoreGradient(const GradientBlock&, const GradientTiles&) { assert(false); }

}  // namespace hippodrome::cpu
#endif
