// Dropout of the elements of a matrix.
#ifndef HIPPODROME_KERNELS_CPU_ROWS_DROPOUT_H_
#define HIPPODROME_KERNELS_CPU_ROWS_DROPOUT_H_

#include "kernels/cpu/base/thread_pool.h"
#include "kernels/dropout_bits.h"
#include "kernels/tensor.h"

namespace hippodrome::cpu {

// The contract of TrainingBackend::Drop, by the bits of kernels/dropout_bits.h. REQUIRES: 0 <= p <
// 1.
void Drop(ThreadPool& pool, double p, uint64_t seed, Tensor x);

// x[i] = 0 where the bits of column first + i of the row are below `threshold`, else x[i] * scale;
// i < n.
void DropColumns(DropoutRow row, uint32_t threshold, float scale, int64_t first, int64_t n,
                 float* x);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_ROWS_DROPOUT_H_
