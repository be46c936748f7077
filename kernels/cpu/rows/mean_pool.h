// The mean of a sequence's unmasked rows.
#ifndef HIPPODROME_KERNELS_CPU_ROWS_MEAN_POOL_H_
#define HIPPODROME_KERNELS_CPU_ROWS_MEAN_POOL_H_

#include "kernels/cpu/base/thread_pool.h"
#include "kernels/training_backend.h"

namespace hippodrome::cpu {

// The contract of Backend::MeanPool.
void MeanPool(ThreadPool& pool, Tensor x, Tensor mask, Tensor y);

// The contract of TrainingBackend::MeanPoolBackward.
void MeanPoolBackward(ThreadPool& pool, Tensor mask, Tensor dy, Gradient dx);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_ROWS_MEAN_POOL_H_
