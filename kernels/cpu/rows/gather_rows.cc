#include "kernels/cpu/rows/gather_rows.h"

#include <algorithm>

#include "kernels/cpu/base/memory.h"
#include "kernels/cpu/base/parallel_loops.h"

namespace hippodrome::cpu {

void GatherRows(ThreadPool& pool, Tensor x, Tensor rows, Tensor y) {
  assert(rows.rows == 1 && rows.cols == y.rows && x.cols == y.cols);
  const int32_t* from = I32Row(rows, 0);
  ParallelRows(pool, y.rows, y.cols, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      assert(from[row] >= -1 && from[row] < x.rows);
      if (from[row] < 0) {
        std::fill_n(F32Row(y, row), y.cols, 0.0f);
      } else {
        std::copy_n(F32Row(x, from[row]), y.cols, F32Row(y, row));
      }
    }
  });
}

}  // namespace hippodrome::cpu
