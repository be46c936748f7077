#include "kernels/cpu/gemm/activate.h"

#include <algorithm>
#include <cassert>

#include "kernels/cpu/base/memory.h"
#include "kernels/cpu/base/parallel_loops.h"
#include "kernels/cpu/gemm/epilogue.h"

namespace hippodrome::cpu {
namespace {

// Columns that are worked on together.
constexpr int64_t kPiece = 256;

// An activation takes about as long as this many simple elements.
constexpr int64_t kActivationWork = 8;

float* RowOrNull(const Tensor& x, int64_t row) {
  return x.data == nullptr ? nullptr : F32Row(x, row);
}

// The columns from `column` of one row.
void BackwardPiece(Tensor x, const Epilogue& epilogue, Tensor dy, const Gradient& dx,
                   const Gradient& dgate, int64_t row, int64_t column, int64_t cols) {
  const auto at = [&](const Tensor& t) {
    float* values = RowOrNull(t, row);
    return values == nullptr ? nullptr : values + column;
  };
  float dz[kPiece];
  std::copy_n(at(x), cols, dz);
  ApplyEpilogueBackward({.cols = cols,
                         .activation = epilogue.activation,
                         .bias = nullptr,
                         .gate = at(epilogue.gate),
                         .dy = at(dy),
                         .z = dz,
                         .dgate = at(dgate.tensor),
                         .add_to_dgate = dgate.add});
  float* to = at(dx.tensor);
  if (to == nullptr) return;
  for (int64_t i = 0; i < cols; ++i) to[i] = dx.add ? to[i] + dz[i] : dz[i];
}

}  // namespace

void Activate(ThreadPool& pool, Tensor x, const Epilogue& epilogue, Tensor y) {
  assert(x.rows == y.rows && x.cols == y.cols && epilogue.bias.data == nullptr);
  ParallelRows(pool, y.rows, y.cols * kActivationWork, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      ApplyEpilogue(EpilogueOfTile(epilogue, y, F32Row(x, row), row, 1, 0, y.cols));
    }
  });
}

void ActivateBackward(ThreadPool& pool, Tensor x, const Epilogue& epilogue, Tensor dy, Gradient dx,
                      Gradient dgate) {
  assert(x.rows == dy.rows && x.cols == dy.cols && epilogue.bias.data == nullptr);
  ParallelRows(pool, dy.rows, dy.cols * kActivationWork, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t column = 0; column < dy.cols; column += kPiece) {
        BackwardPiece(x, epilogue, dy, dx, dgate, row, column, std::min(kPiece, dy.cols - column));
      }
    }
  });
}

}  // namespace hippodrome::cpu
