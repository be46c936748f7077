#include "kernels/cpu/mean_pool.h"

#include <algorithm>

#include "kernels/cpu/parallel_rows.h"
#include "kernels/cpu/tensor_memory.h"

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

}  // namespace hippodrome::cpu
