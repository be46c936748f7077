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

// A left operand (microkernel_amx.h). Its rows are read 32 at a time, those behind the last one
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
// rows, for each half of a panel's columns or for both, in the order of the rows for each column.
// Of products over a long depth a part of A is read once for all panels. REQUIRES: AmxRegisters in
// this thread; begin a multiple of 32.
template <typename Done>
void MultiplyAmxPanels(const AmxOperand& a, const PackedWeights& w, int64_t first, int64_t last,
                       int64_t begin, int64_t end, const Done& done) {
  // Steps after which the other rows come: half a panel's then stay in the first-level cache.
  constexpr int64_t kSliceSteps = 16;
  constexpr int64_t kHalf = kPanelColumns / 2;
  const int64_t padded = (end - begin + kAmxRows - 1) / kAmxRows * kAmxRows;
  const int64_t paired = padded / 32 * 32;  // rows that are taken 32 at a time
  const int64_t panel_sums = (padded + kAmxRows) * kPanelColumns;
  const int64_t slices = (a.steps + kSliceSteps - 1) / kSliceSteps;
  // One slice leaves nothing behind: all pieces then share one place in the first-level cache.
  const bool shared = slices == 1;
  float* sums =
      ThreadScratch<float>(ScratchUse::kLinearSums, panel_sums * (shared ? 1 : last - first));
  // Few rows take weights as fast as memory gives them: the first to read a panel fetches.
  const bool streams = a.rows <= 2 * kAmxDepth;
  const auto multiply = [&](int64_t slice, int64_t panel) {
    const int64_t step = a.steps * slice / slices;
    const int64_t first_column = panel * kPanelColumns;
    const int64_t cols = std::min(kPanelColumns, w.out() - first_column);
    const BF16* weights = reinterpret_cast<const BF16*>(w.panel(panel));
    const auto sums_of = [&](int64_t row, int64_t column) {
      return shared ? sums : sums + (panel - first) * panel_sums + row * kPanelColumns + column;
    };
    const auto block = [&](int64_t row, int64_t column) -> AmxBlock {
      return {.a = a.at(begin + row, step),
              .a_row = a.row,
              .a_step = a.step,
              .a_tile = a.tile,
              .panel = weights + step * kAmxDepth * kPanelColumns + column * 2,
              .steps = a.steps * (slice + 1) / slices - step,
              .accumulate = slice > 0,
              .fetch = streams && row == 0 && column == 0,
              .sums = sums_of(row, column)};
    };
    const auto finish = [&](int64_t row, int64_t rows, int64_t column, int64_t count) {
      if (slice + 1 < slices) return;
      done(AmxSums{.sums = sums_of(row, column),
                   .row = begin + row,
                   .rows = std::min(rows, end - begin - row),
                   .column = first_column + column,
                   .cols = std::min(count, cols - column)});
    };
    for (int64_t column = 0; column < cols; column += kHalf) {
      for (int64_t row = 0; row < paired; row += 32) {
        MultiplyAmx32x32(block(row, column));
        finish(row, 32, column, kHalf);
      }
    }
    if (paired < padded) {
      MultiplyAmx16x64(block(paired, 0));
      finish(paired, kAmxRows, 0, kPanelColumns);
    }
  };
  for (int64_t slice = 0; slice < slices; ++slice) {
    for (int64_t panel = first; panel < last; ++panel) multiply(slice, panel);
  }
}

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_GEMM_LINEAR_AMX_H_
