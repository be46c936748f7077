#include "kernels/cpu/rows/scatter_rows.h"

#include <algorithm>

#include "kernels/cpu/base/memory.h"
#include "kernels/cpu/base/parallel_loops.h"

namespace hippodrome::cpu {
namespace {

// Columns of a task: whole cache lines, and several of them, so that a row is read in runs.
constexpr int64_t kColumns = 64;

void ScatterColumns(const Tensor& dy, const int32_t* indices, const Tensor& dtable) {
  for (int64_t row = 0; row < dy.rows; ++row) {
    assert(indices[row] >= -1 && indices[row] < dtable.rows);
    if (indices[row] < 0) continue;
    const float* from = F32Row(dy, row);
    float* to = F32Row(dtable, indices[row]);
    for (int64_t c = 0; c < dy.cols; ++c) to[c] += from[c];
  }
}

}  // namespace

void ScatterRows(ThreadPool& pool, Tensor dy, Tensor indices, Tensor dtable) {
  assert(indices.rows == 1 && indices.cols == dy.rows && dtable.cols == dy.cols);
  // Any two rows may name the same index: tasks share columns out.
  const int64_t tasks = (dy.cols + kColumns - 1) / kColumns;
  ParallelRows(pool, tasks, dy.rows * kColumns, [&](int64_t begin, int64_t end) {
    const int64_t first = begin * kColumns;
    const int64_t count = std::min(end * kColumns, dy.cols) - first;
    ScatterColumns(dy.Cols(first, count), I32Row(indices, 0), dtable.Cols(first, count));
  });
}

}  // namespace hippodrome::cpu
