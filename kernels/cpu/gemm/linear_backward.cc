#include "kernels/cpu/gemm/linear_backward.h"

#include <algorithm>

#include "kernels/cpu/base/memory.h"
#include "kernels/cpu/base/parallel_loops.h"
#include "kernels/cpu/gemm/epilogue.h"
#include "kernels/cpu/gemm/linear_backward_amx.h"
#include "kernels/cpu/gemm/trained_weights.h"

namespace hippodrome::cpu {
namespace {

// Rows that are carried through all products before the next ones, while they are in a cache; the
// sums over rows are cut here too.
constexpr int64_t kBlockRows = 1024;

// Columns of dz that one task sums or transposes.
constexpr int64_t kStrip = 64;

Tensor ScratchMatrix(ScratchUse use, int64_t rows, int64_t cols) {
  float* data = ThreadScratch<float>(use, rows * cols);
  return {.data = data, .dtype = DType::kF32, .rows = rows, .cols = cols, .stride = cols};
}

Tensor RowsOrNone(const Tensor& tensor, int64_t begin, int64_t count) {
  return tensor.data == nullptr ? tensor : tensor.Rows(begin, count);
}

// One block of rows of everything.
struct Block {
  Tensor x;
  Tensor dy;
  Tensor gate;
  Gradient dx;
  Gradient dgate;
};

// Whether dz is dy.
bool IsPlain(const Block& block, const Epilogue& epilogue) {
  return epilogue.activation == Epilogue::Activation::kNone && block.gate.data == nullptr;
}

// What leads from `cols` values of z, from (row, column) on, to dz.
EpilogueBackwardArguments BackwardOfRow(const Block& block, const Epilogue& epilogue, float* z,
                                        int64_t row, int64_t column, int64_t cols) {
  const bool gated = block.gate.data != nullptr;
  const bool wants_gate = gated && block.dgate.tensor.data != nullptr;
  return {.cols = cols,
          .activation = epilogue.activation,
          .bias = epilogue.bias.data != nullptr ? F32Row(epilogue.bias, 0) + column : nullptr,
          .gate = gated ? F32Row(block.gate, row) + column : nullptr,
          .dy = F32Row(block.dy, row) + column,
          .z = z,
          .dgate = wants_gate ? F32Row(block.dgate.tensor, row) + column : nullptr,
          .add_to_dgate = block.dgate.add};
}

// dz in memory of this thread, or dy itself where they are the same. Replaces the gate's gradient.
Tensor GradientOfSums(ThreadPool& pool, const Block& block, const PackedWeights& w,
                      const Epilogue& epilogue, DotKernel kernel) {
  const Tensor& dy = block.dy;
  if (IsPlain(block, epilogue)) return dy;
  const Tensor z = ScratchMatrix(ScratchUse::kLinearGradient, dy.rows, dy.cols);
  Linear(pool, block.x, w, {}, z, kernel);
  ParallelRows(pool, dy.rows, 4 * dy.cols, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      ApplyEpilogueBackward(BackwardOfRow(block, epilogue, F32Row(z, row), row, 0, dy.cols));
    }
  });
  return z;
}

// A strip of columns of dz: their sums over rows, added to dbias.
void AddColumnSums(const Tensor& dz, const Tensor& dbias, int64_t column, int64_t count) {
  float sums[kStrip] = {};
  for (int64_t row = 0; row < dz.rows; ++row) {
    const float* from = F32Row(dz, row) + column;
    for (int64_t c = 0; c < count; ++c) sums[c] += from[c];
  }
  for (int64_t c = 0; c < count; ++c) F32Row(dbias, 0)[column + c] += sums[c];
}

void TransposeColumns(const Tensor& dz, const Tensor& transposed, int64_t column, int64_t count) {
  constexpr int64_t kRows = 16;  // of a square that fits in the first-level cache
  for (int64_t begin = 0; begin < dz.rows; begin += kRows) {
    const int64_t end = std::min(begin + kRows, dz.rows);
    for (int64_t c = column; c < column + count; ++c) {
      float* to = F32Row(transposed, c);
      for (int64_t row = begin; row < end; ++row) to[row] = F32Row(dz, row)[c];
    }
  }
}

// Calls body(column, count) for strips of the columns.
template <typename Body>
void ParallelStrips(ThreadPool& pool, int64_t cols, const Body& body) {
  pool.Run((cols + kStrip - 1) / kStrip, [&](int64_t index, int) {
    body(index * kStrip, std::min(kStrip, cols - index * kStrip));
  });
}

// dW += dz^T x, as a product of dz^T with the columns of x in panels.
void AddWeightGradient(ThreadPool& pool, const Tensor& x, const Tensor& dz, DType dtype,
                       const Tensor& dw, DotKernel kernel) {
  const Tensor transposed = ScratchMatrix(ScratchUse::kLinearTransposed, dz.cols, dz.rows);
  ParallelStrips(pool, dz.cols, [&](int64_t column, int64_t count) {
    TransposeColumns(dz, transposed, column, count);
  });
  const int64_t panels = (x.cols + kPanelColumns - 1) / kPanelColumns;
  void* memory = ThreadScratch<char>(ScratchUse::kLinearColumns,
                                     panels * PackedWeights::PanelBytes(x.rows, dtype));
  const PackedWeights columns(x.cols, x.rows, dtype, memory);
  PackColumns(pool, RowsOf(std::span(&x, 1)), columns);
  Linear(pool, transposed, columns, {.residual = dw}, dw, kernel);
}

void BackwardOfBlock(ThreadPool& pool, const Block& block, const TrainedWeights& w,
                     const Epilogue& epilogue, const LinearGradients& gradients, DotKernel kernel) {
  const Tensor dz = GradientOfSums(pool, block, w, epilogue, kernel);
  if (gradients.bias.data != nullptr) {
    ParallelStrips(pool, dz.cols, [&](int64_t column, int64_t count) {
      AddColumnSums(dz, gradients.bias, column, count);
    });
  }
  if (const Tensor& dx = block.dx.tensor; dx.data != nullptr) {
    Linear(pool, dz, w.transposed(), {.residual = block.dx.add ? dx : Tensor{}}, dx, kernel);
  }
  if (gradients.weights.data != nullptr) {
    AddWeightGradient(pool, block.x, dz, w.dtype(), gradients.weights, kernel);
  }
}

// The same on matrix registers.
void BackwardOfBlockAmx(ThreadPool& pool, const Block& block, const TrainedWeights& w,
                        const Epilogue& epilogue, const LinearGradients& gradients) {
  const LinearGradients wanted = {
      .x = block.dx, .weights = gradients.weights, .bias = gradients.bias};
  const auto gradient = [&](const AmxSums& z) {
    for (int64_t r = 0; r < z.rows; ++r) {
      float* values = z.sums + r * kPanelColumns;
      ApplyEpilogueBackward(BackwardOfRow(block, epilogue, values, z.row + r, z.column, z.cols));
    }
  };
  const Tensor dz = IsPlain(block, epilogue) ? block.dy : Tensor{};
  LinearBackwardAmx(pool, block.x, w, dz, gradient, wanted);
}

}  // namespace

void LinearBackward(ThreadPool& pool, Tensor x, const TrainedWeights& w, const Epilogue& epilogue,
                    Tensor dy, const LinearGradients& gradients, DotKernel kernel) {
  assert(x.cols == w.in() && dy.cols == w.out() && x.rows == dy.rows);
  const bool amx = w.dtype() == DType::kBF16 && ChosenKernel(kernel) == DotKernel::kAmx;
  for (int64_t begin = 0; begin < x.rows; begin += kBlockRows) {
    const int64_t rows = std::min(kBlockRows, x.rows - begin);
    const Block block = {
        .x = x.Rows(begin, rows),
        .dy = dy.Rows(begin, rows),
        .gate = RowsOrNone(epilogue.gate, begin, rows),
        .dx = {RowsOrNone(gradients.x.tensor, begin, rows), gradients.x.add},
        .dgate = {RowsOrNone(gradients.gate.tensor, begin, rows), gradients.gate.add}};
    if (amx) {
      BackwardOfBlockAmx(pool, block, w, epilogue, gradients);
    } else {
      BackwardOfBlock(pool, block, w, epilogue, gradients, kernel);
    }
  }
}

}  // namespace hippodrome::cpu
