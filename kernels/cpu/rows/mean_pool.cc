#include "kernels/cpu/rows/mean_pool.h"

#include <algorithm>

#include "kernels/cpu/base/memory.h"
#include "kernels/cpu/base/parallel_loops.h"

namespace hippodrome::cpu {
namespace {

// The mean of the rows of x, one sequence, where mask is not 0.
void PoolSequence(const Tensor& x, const int32_t* mask, float* y) {
  std::fill_n(y, x.cols, 0.0f);
  int64_t count = 0;
  for (int64_t t = 0; t < x.rows; ++t) {
    if (mask[t] == 0) continue;
    ++count;
    const float* row = F32Row(x, t);
    for (int64_t c = 0; c < x.cols; ++c) y[c] += row[c];
  }
  if (count == 0) return;
  for (int64_t c = 0; c < x.cols; ++c) y[c] /= static_cast<float>(count);
}

// dx = dy / count in the rows of a sequence where mask is not 0, which are `count`, else 0.
void SpreadSequence(const int32_t* mask, const float* dy, const Gradient& dx) {
  const Tensor& out = dx.tensor;
  const auto count = static_cast<float>(out.rows - std::count(mask, mask + out.rows, 0));
  for (int64_t t = 0; t < out.rows; ++t) {
    float* row = F32Row(out, t);
    if (!dx.add) std::fill_n(row, out.cols, 0.0f);
    if (mask[t] == 0) continue;
    for (int64_t c = 0; c < out.cols; ++c) row[c] += dy[c] / count;
  }
}

}  // namespace

void MeanPool(ThreadPool& pool, Tensor x, Tensor mask, Tensor y) {
  assert(x.rows == mask.rows * mask.cols && y.rows == mask.rows && x.cols == y.cols);
  const int64_t tokens = mask.cols;
  ParallelRows(pool, y.rows, tokens * x.cols, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      PoolSequence(x.Rows(b * tokens, tokens), I32Row(mask, b), F32Row(y, b));
    }
  });
}

void MeanPoolBackward(ThreadPool& pool, Tensor mask, Tensor dy, Gradient dx) {
  if (dx.tensor.data == nullptr) return;
  const int64_t tokens = mask.cols;
  assert(dx.tensor.rows == mask.rows * tokens && dy.rows == mask.rows && dx.tensor.cols == dy.cols);
  ParallelRows(pool, mask.rows, tokens * dy.cols, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      SpreadSequence(I32Row(mask, b), F32Row(dy, b), {dx.tensor.Rows(b * tokens, tokens), dx.add});
    }
  });
}

}  // namespace hippodrome::cpu
