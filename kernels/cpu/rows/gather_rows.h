// Rows picked out of a matrix.
#ifndef HIPPODROME_KERNELS_CPU_ROWS_GATHER_ROWS_H_
#define HIPPODROME_KERNELS_CPU_ROWS_GATHER_ROWS_H_

#include "kernels/cpu/base/thread_pool.h"
#include "kernels/tensor.h"

namespace hippodrome::cpu {

// The contract of Backend::GatherRows.
void GatherRows(ThreadPool& pool, Tensor x, Tensor rows, Tensor y);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_ROWS_GATHER_ROWS_H_
