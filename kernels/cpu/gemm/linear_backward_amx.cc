#include "kernels/cpu/gemm/linear_backward_amx.h"

#include "kernels/cpu/base/memory.h"
#include "kernels/cpu/gemm/trained_weights.h"

namespace hippodrome::cpu {
namespace {

// Rows whose gradients one task sums by columns before they are added to dbias. Fixed, as the order
// of the sums depends on it.
constexpr int64_t kBlockRows = 32;

// Rows and panels of a task: a panel's weights serve all the rows, and those of all panels stay in
// the second-level cache.
constexpr int64_t kTaskRows = 8 * kBlockRows;
constexpr int64_t kGroupPanels = 8;

constexpr int64_t kSide = 32;  // of the blocks that are stored as tiles

int64_t DivideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

AmxTiles ScratchTiles(ScratchUse use, int64_t rows, int64_t depth) {
  return {rows, depth, ThreadScratch<BF16>(use, AmxTiles::Elements(rows, depth))};
}

// dz of all rows, in the caller's scratch memory.
struct Operands {
  AmxTiles rows;     // dz
  AmxTiles columns;  // dz^T
  float* sums;       // [ceil(rows / kBlockRows)][out], of the columns over a block of rows
  int64_t out;
};

// A piece of dz of at most 32 rows into both operands; piece.row is a multiple of 32.
void StorePiece(const AmxSums& piece, int64_t stride, const Operands& to) {
  for (int64_t c = 0; c < piece.cols; c += kSide) {
    const int64_t column = piece.column + c;
    BF16* rows = to.rows.at(piece.row) + column / kAmxDepth * kAmxTile;
    BF16* columns = to.columns.at(column) + piece.row / kAmxDepth * kAmxTile;
    StoreGradient({.values = piece.sums + c,
                   .stride = stride,
                   .rows = piece.rows,
                   .cols = std::min(kSide, piece.cols - c)},
                  {.rows = {rows, rows + to.rows.row_stride()},
                   .columns = {columns, columns + to.columns.row_stride()},
                   .sums = to.sums + piece.row / kBlockRows * to.out + column});
  }
}

// The same of dy: the columns of one panel of rows [begin, end).
void StoreRows(const Tensor& dy, int64_t panel, int64_t begin, int64_t end, const Operands& to) {
  const int64_t column = panel * kPanelColumns;
  for (int64_t row = begin; row < end; row += kSide) {
    StorePiece({.sums = F32Row(dy, row) + column,
                .row = row,
                .rows = std::min(kSide, end - row),
                .column = column,
                .cols = std::min(kPanelColumns, dy.cols - column)},
               dy.stride, to);
  }
}

Operands ScratchOperands(int64_t rows, int64_t out) {
  const int64_t sums = DivideUp(rows, kBlockRows) * out;
  const Operands operands = {ScratchTiles(ScratchUse::kLinearGradient, rows, out),
                             ScratchTiles(ScratchUse::kLinearTransposed, out, rows),
                             ThreadScratch<float>(ScratchUse::kLinearPartialSums, sums), out};
  std::fill_n(operands.sums, sums, 0.0f);
  return operands;
}

void AddColumnSums(const Operands& dz, const Tensor& dbias) {
  for (int64_t begin = 0; begin < dz.rows.rows; begin += kBlockRows) {
    const float* sums = dz.sums + begin / kBlockRows * dz.out;
    for (int64_t c = 0; c < dz.out; ++c) F32Row(dbias, 0)[c] += sums[c];
  }
}

// dW += dz^T x
void AddWeightGradient(ThreadPool& pool, const Tensor& x, const AmxTiles& dz, const Tensor& dw) {
  const int64_t panel_bytes = PackedWeights::PanelBytes(x.rows, DType::kBF16);
  void* memory = ThreadScratch<char>(ScratchUse::kLinearColumns,
                                     DivideUp(x.cols, kPanelColumns) * panel_bytes);
  const PackedWeights columns(x.cols, x.rows, DType::kBF16, memory);
  PackColumns(pool, RowsOf(std::span(&x, 1)), columns);
  MultiplyAmx(pool, dz, columns, {.residual = dw}, dw);
}

}  // namespace

void LinearBackwardAmx(ThreadPool& pool, const Tensor& x, const TrainedWeights& w, const Tensor& dy,
                       const GradientOfPiece& gradient, const LinearGradients& gradients) {
  const bool multiplies = dy.data == nullptr;
  const Operands dz = ScratchOperands(x.rows, w.out());
  const AmxTiles inputs = ScratchTiles(ScratchUse::kLinearInput, x.rows, x.cols);
  if (multiplies) RoundToTiles(pool, x, inputs);
  const int64_t blocks = DivideUp(x.rows, kTaskRows);
  pool.Run(blocks * DivideUp(w.panels(), kGroupPanels), [&](int64_t index, int) {
    const int64_t begin = index % blocks * kTaskRows;
    const int64_t end = std::min(begin + kTaskRows, x.rows);
    const int64_t first = index / blocks * kGroupPanels;
    const int64_t last = std::min(first + kGroupPanels, w.panels());
    const AmxRegisters registers;
    for (int64_t panel = first; panel < last; ++panel) {
      if (!multiplies) {
        StoreRows(dy, panel, begin, end, dz);
        continue;
      }
      MultiplyAmxPanels(inputs, w, panel, panel + 1, begin, end, [&](const AmxSums& piece) {
        gradient(piece);
        StorePiece(piece, kPanelColumns, dz);
      });
    }
  });
  if (gradients.bias.data != nullptr) AddColumnSums(dz, gradients.bias);
  if (const Tensor& dx = gradients.x.tensor; dx.data != nullptr) {
    MultiplyAmx(pool, dz.rows, w.transposed(), {.residual = gradients.x.add ? dx : Tensor{}}, dx);
  }
  if (gradients.weights.data != nullptr) {
    AddWeightGradient(pool, x, dz.columns, gradients.weights);
  }
}

}  // namespace hippodrome::cpu
