// Products with bf16 weights on matrix registers.
#ifndef HIPPODROME_KERNELS_CPU_GEMM_LINEAR_AMX_H_
#define HIPPODROME_KERNELS_CPU_GEMM_LINEAR_AMX_H_

#include <algorithm>
#include <cstdint>

#include "kernels/backend.h"
#include "kernels/cpu/base/memory.h"
#include "kernels/cpu/base/thread_pool.h"
#include "kernels/cpu/gemm/microkernel_amx.h"
#include "kernels/cpu/gemm/packed_weights.h"

namespace hippodrome::cpu {

// A left operand (microkernel_amx.h). Its rows are read 16 at a time, those behind the last one
// too.
struct AmxOperand {
  const BF16* at(int64_t row_index, int64_t step_index) const {  // row_index: a multiple of 16
    return data + row_index / kAmxRows * tile + step_index * step;
  }

  const BF16* data;
  int64_t rows;
  int64_t steps;
  int64_t row;   // elements from a row to the next one of its tile
  int64_t step;  // from a tile to the next one of its rows
  int64_t tile;  // from a tile to the one below
};

// Rows as Linear() has them, `stride` elements apart: InputStride().
inline AmxOperand AmxRowsOperand(const BF16* data, int64_t stride, int64_t rows, int64_t depth) {
  return {.data = data,
          .rows = rows,
          .steps = (depth + kAmxDepth - 1) / kAmxDepth,
          .row = stride,
          .step = kAmxDepth,
          .tile = kAmxRows * stride};
}

// One in tiles [ceil(rows / 32) * 2][steps][16][32], in memory that the caller keeps.
struct AmxTiles {
  AmxTiles(int64_t row_count, int64_t depth, BF16* memory)
      : rows(row_count), steps((depth + kAmxDepth - 1) / kAmxDepth), data(memory) {}
  static int64_t Elements(int64_t rows, int64_t depth) {
    return AmxTiles(rows, depth, nullptr).row_stride() * ((rows + 31) / 32 * 2);
  }
  int64_t row_stride() const { return steps * kAmxTile; }
  // The row of tiles that begins with row `row`, a multiple of 16.
  BF16* at(int64_t row) const { return data + row / kAmxRows * row_stride(); }
  operator AmxOperand() const {  // NOLINT(google-explicit-constructor)
    return {.data = data,
            .rows = rows,
            .steps = steps,
            .row = kAmxDepth,
            .step = kAmxTile,
            .tile = row_stride()};
  }

  int64_t rows;
  int64_t steps;
  BF16* data;
};

// x rounded to bf16, to nearest even.
void RoundToTiles(ThreadPool& pool, const Tensor& x, const AmxTiles& tiles);

// y = epilogue(A W^T), y of kF32 or kBF16.
void MultiplyAmx(ThreadPool& pool, const AmxOperand& a, const PackedWeights& w,
                 const Epilogue& epilogue, const Tensor& y);

// One piece of a product: sums [rows][64 apart] of the rows from `row` and the columns from
// `column` on.
struct AmxSums {
  float* sums;
  int64_t row;
  int64_t rows;
  int64_t column;
  int64_t cols;
};

// Rows [begin, end) of A by panels [first, last) of W; calls done(AmxSums) on pieces of at most 32
// rows by a panel's columns, in the order of the rows. Of a product in several slices of the depth
// a slice of A is read once for all panels. REQUIRES: AmxRegisters in this thread; begin a multiple
// of 32.
template <typename Done>
void MultiplyAmxPanels(const AmxOperand& a, const PackedWeights& w, int64_t first, int64_t last,
                       int64_t begin, int64_t end, const Done& done) {
  constexpr int64_t kPieceRows = 2 * kAmxRows;
  const int64_t rows = end - begin;
  // Steps after which the next 16 rows come: the panel's part then stays in the first-level cache.
  const int64_t slice_steps = rows > kAmxRows ? 8 : 16;
  const int64_t slices = (a.steps + slice_steps - 1) / slice_steps;
  const int64_t panel_sums = (rows + kPieceRows) * kPanelColumns;
  // One slice leaves nothing behind: all pieces then share one place in the first-level cache.
  const bool shared = slices == 1;
  float* const memory =
      ThreadScratch<float>(ScratchUse::kLinearSums, panel_sums * (shared ? 1 : last - first));
  const auto multiply = [&](int64_t slice, int64_t panel) {
    const int64_t step = a.steps * slice / slices;
    const BF16* const weights =
        reinterpret_cast<const BF16*>(w.panel(panel)) + step * kAmxDepth * kPanelColumns;
    for (int64_t row = 0; row < rows; row += kPieceRows) {
      const int64_t count = std::min(kPieceRows, rows - row);
      float* const sums =
          shared ? memory : memory + (panel - first) * panel_sums + row * kPanelColumns;
      for (int64_t r = 0; r < count; r += kAmxRows) {
        MultiplyAmxTile({.a = a.at(begin + row + r, step),
                         .a_row = a.row,
                         .a_step = a.step,
                         .panel = weights,
                         .steps = a.steps * (slice + 1) / slices - step,
                         .accumulate = slice > 0,
                         .fetch = row + r == 0,
                         .sums = sums + r * kPanelColumns});
      }
      if (slice + 1 < slices) continue;
      const int64_t column = panel * kPanelColumns;
      done(AmxSums{.sums = sums,
                   .row = begin + row,
                   .rows = count,
                   .column = column,
                   .cols = std::min(kPanelColumns, w.out() - column)});
    }
  };
  for (int64_t slice = 0; slice < slices; ++slice) {
    for (int64_t panel = first; panel < last; ++panel) multiply(slice, panel);
  }
}

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_GEMM_LINEAR_AMX_H_
