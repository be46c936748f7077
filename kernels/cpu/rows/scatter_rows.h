// Sums of rows by index.
#ifndef HIPPODROME_KERNELS_CPU_ROWS_SCATTER_ROWS_H_
#define HIPPODROME_KERNELS_CPU_ROWS_SCATTER_ROWS_H_

#include "kernels/cpu/base/thread_pool.h"
#include "kernels/tensor.h"

namespace hippodrome::cpu {

// The contract of TrainingBackend::ScatterRows; rows of one index are added in their order.
void ScatterRows(ThreadPool& pool, Tensor dy, Tensor indices, Tensor dtable);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_ROWS_SCATTER_ROWS_H_
