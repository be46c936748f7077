// Loops over rows, and over the elements of matrices, that share threads only when the work is
// worth waking them.
#ifndef HIPPODROME_KERNELS_CPU_BASE_PARALLEL_LOOPS_H_
#define HIPPODROME_KERNELS_CPU_BASE_PARALLEL_LOOPS_H_

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>

#include "kernels/cpu/base/memory.h"
#include "kernels/cpu/base/thread_pool.h"

namespace hippodrome::cpu {

// Elements of simple work (a few operations each) that take about as long as waking a thread.
inline constexpr int64_t kSerialWork = 1 << 14;

// Calls body(begin, end) on ranges of nearly equal size that cover [0, rows), where a row costs
// `work` elements. More ranges than threads are as many for each of them.
template <typename Body>
void ParallelRows(ThreadPool& pool, int64_t rows, int64_t work, const Body& body) {
  const int64_t grain = std::max<int64_t>(1, kSerialWork / std::max<int64_t>(1, work));
  const int64_t threads = pool.threads();
  int64_t tasks = (rows + grain - 1) / grain;
  if (tasks > threads) tasks = std::min(rows, (tasks + threads - 1) / threads * threads);
  pool.Run(tasks,
           [&](int64_t index, int) { body(rows * index / tasks, rows * (index + 1) / tasks); });
}

// Matrices of one shape cut in spans: pieces of a row of at most kLength adjacent elements. Without
// gaps between rows, all rows are one. The cuts follow from shapes and strides alone.
template <int kCount>
class Spans {
 public:
  static constexpr int64_t kLength = 1 << 13;

  explicit Spans(const std::array<Tensor, kCount>& tensors)
      : tensors_(tensors), rows_(tensors[0].rows), cols_(tensors[0].cols) {
    bool adjacent = true;
    for (const Tensor& tensor : tensors) {
      assert(tensor.rows == rows_ && tensor.cols == cols_);
      adjacent = adjacent && tensor.stride == cols_;
    }
    if (adjacent) {
      cols_ *= rows_;
      rows_ = std::min<int64_t>(rows_, 1);
    }
    per_row_ = (cols_ + kLength - 1) / kLength;
  }

  int64_t count() const { return rows_ * per_row_; }

  // Calls body(index, n, pointers) once for each span: its number, its length and where it starts
  // in each matrix.
  template <typename Body>
  void ForEach(ThreadPool& pool, const Body& body) const {
    ParallelRows(pool, count(), std::min(cols_, kLength), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t column = i % per_row_ * kLength;
        std::array<float*, kCount> starts;
        for (int t = 0; t < kCount; ++t) starts[t] = F32Row(tensors_[t], i / per_row_) + column;
        body(i, std::min(kLength, cols_ - column), starts);
      }
    });
  }

 private:
  std::array<Tensor, kCount> tensors_;
  int64_t rows_;
  int64_t cols_;
  int64_t per_row_;
};

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_BASE_PARALLEL_LOOPS_H_
