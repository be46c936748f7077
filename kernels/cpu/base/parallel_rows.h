// Loops over rows that share threads only when the work is worth waking them.
#ifndef HIPPODROME_KERNELS_CPU_BASE_PARALLEL_ROWS_H_
#define HIPPODROME_KERNELS_CPU_BASE_PARALLEL_ROWS_H_

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/base/thread_pool.h"

namespace hippodrome::cpu {

// Elements of simple work (a few operations each) that take about as long as waking a thread.
inline constexpr int64_t kSerialWork = 1 << 14;

// Calls body(begin, end) on ranges that cover [0, rows), where a row costs `work` elements.
template <typename Body>
void ParallelRows(ThreadPool& pool, int64_t rows, int64_t work, const Body& body) {
  const int64_t grain = std::max<int64_t>(1, kSerialWork / std::max<int64_t>(1, work));
  const int64_t tasks = (rows + grain - 1) / grain;
  pool.Run(tasks,
           [&](int64_t index, int) { body(index * grain, std::min(rows, (index + 1) * grain)); });
}

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_BASE_PARALLEL_ROWS_H_
