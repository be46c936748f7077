#include "kernels/cpu/gemm/trained_weights.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/base/memory.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gemm/trained_weights.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "kernels/cpu/base/bf16_lanes-inl.h"
#include "kernels/cpu/base/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hippodrome::cpu {
namespace HWY_NAMESPACE {

using Bits = hn::RebindToUnsigned<D>;

HWY_INLINE hn::Vec<Bits> Pair(hn::Vec<D> first, hn::Vec<D> second) {
  const Bits d;
  return hn::Or(hn::ShiftRight<16>(hn::BitCast(d, NearestBF16(D(), first))),
                hn::BitCast(d, NearestBF16(D(), second)));
}

// One row of pairs of a panel.
void PairColumns(const float* first, const float* second, uint32_t* pairs) {
  const D d;
  for (int64_t c = 0; c < kPanelColumns; c += kLanes) {
    hn::StoreU(Pair(hn::LoadU(d, first + c), hn::LoadU(d, second + c)), Bits(), pairs + c);
  }
}

void PairRow(const float* x, int64_t n, uint32_t* pairs) {
  const D d;
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    hn::Vec<D> first;
    hn::Vec<D> second;
    hn::LoadInterleaved2(d, x + i, first, second);
    hn::StoreU(Pair(first, second), Bits(), pairs + i / 2);
  }
  for (; i < n; i += 2) {
    const uint32_t second = i + 1 < n ? ToBF16(x[i + 1]).bits : 0;
    pairs[i / 2] = ToBF16(x[i]).bits | second << 16;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace hippodrome::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hippodrome::cpu {

namespace {

HWY_EXPORT(PairColumns);
HWY_EXPORT(PairRow);

// Elements along `in` that one task packs, and that a row is read ahead of its transposition.
constexpr int64_t kStrip = 256;

int64_t DivideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

uint32_t* PanelRow(const PackedWeights& w, int64_t panel, int64_t depth) {
  return reinterpret_cast<uint32_t*>(w.panel(panel)) + depth * kPanelColumns;
}

// Up to 64 values from a row, with zeros behind them.
const float* Filled(const float* row, int64_t count, float* buffer) {
  if (count == kPanelColumns) return row;
  std::copy_n(row, count, buffer);
  std::fill_n(buffer + count, kPanelColumns - count, 0.0f);
  return buffer;
}

// Rows [begin, end) of W^T into one panel; begin is even.
void PackColumnStrip(const RowPointers& rows, const PackedWeights& w, int64_t panel, int64_t begin,
                     int64_t end) {
  const int64_t column = panel * kPanelColumns;
  const int64_t count = std::min(kPanelColumns, w.out() - column);
  float buffers[2][kPanelColumns];
  if (w.dtype() == DType::kF32) {
    for (int64_t k = begin; k < end; ++k) {
      const float* from = Filled(rows[static_cast<size_t>(k)] + column, count, buffers[0]);
      std::memcpy(PanelRow(w, panel, k), from, sizeof(buffers[0]));
    }
    return;
  }
  const float zeros[kPanelColumns] = {};
  for (int64_t k = begin; k < end; k += 2) {
    const size_t row = static_cast<size_t>(k);
    const float* first = Filled(rows[row] + column, count, buffers[0]);
    const float* second = k + 1 < end ? Filled(rows[row + 1] + column, count, buffers[1]) : zeros;
    HWY_DYNAMIC_DISPATCH(PairColumns)(first, second, PanelRow(w, panel, k / 2));
  }
}

// Values [begin, end) of 64 rows of W into one panel; begin is even.
void PackRowStrip(const RowPointers& rows, const PackedWeights& w, int64_t panel, int64_t begin,
                  int64_t end) {
  const int64_t per_depth = w.dtype() == DType::kF32 ? 1 : 2;
  const int64_t depth = DivideUp(end - begin, per_depth);
  const int64_t first = panel * kPanelColumns;
  const int64_t count = std::min(kPanelColumns, w.out() - first);
  uint32_t words[kPanelColumns][kStrip];
  for (int64_t r = 0; r < count; ++r) {
    const float* from = rows[static_cast<size_t>(first + r)] + begin;
    if (per_depth == 1) {
      std::memcpy(words[r], from, static_cast<size_t>(depth) * sizeof(float));
    } else {
      HWY_DYNAMIC_DISPATCH(PairRow)(from, end - begin, words[r]);
    }
  }
  for (int64_t k = 0; k < depth; ++k) {
    uint32_t* out = PanelRow(w, panel, begin / per_depth + k);
    for (int64_t r = 0; r < count; ++r) out[r] = words[r][k];
    std::fill(out + count, out + kPanelColumns, 0);
  }
}

void Pack(ThreadPool& pool, const RowPointers& rows, const PackedWeights& w,
          void (*pack_strip)(const RowPointers&, const PackedWeights&, int64_t, int64_t, int64_t)) {
  const int64_t strips = DivideUp(w.in(), kStrip);
  pool.Run(w.panels() * strips, [&](int64_t index, int) {
    const int64_t panel = index / strips;
    const int64_t begin = index % strips * kStrip;
    const int64_t end = std::min(begin + kStrip, w.in());
    pack_strip(rows, w, panel, begin, end);
    if (end == w.in()) {
      std::fill(PanelRow(w, panel, w.depth()), PanelRow(w, panel, w.filled_depth()), 0);
    }
  });
}

}  // namespace

RowPointers RowsOf(std::span<const Tensor> parts) {
  RowPointers rows;
  for (const Tensor& part : parts) {
    for (int64_t r = 0; r < part.rows; ++r) rows.push_back(F32Row(part, r));
  }
  return rows;
}

void PackRows(ThreadPool& pool, const RowPointers& rows, const PackedWeights& w) {
  assert(static_cast<int64_t>(rows.size()) == w.out());
  Pack(pool, rows, w, PackRowStrip);
}

void PackColumns(ThreadPool& pool, const RowPointers& rows, const PackedWeights& w) {
  assert(static_cast<int64_t>(rows.size()) == w.in());
  Pack(pool, rows, w, PackColumnStrip);
}

void PackTrainedLinear(ThreadPool& pool, std::span<const Tensor> parts, const TrainedWeights& w) {
  const RowPointers rows = RowsOf(parts);
  PackRows(pool, rows, w);
  PackColumns(pool, rows, w.transposed());
}

}  // namespace hippodrome::cpu
#endif  // HWY_ONCE
