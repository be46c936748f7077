// The AdamW optimizer.
#ifndef HIPPODROME_KERNELS_CPU_TRAINING_ADAMW_H_
#define HIPPODROME_KERNELS_CPU_TRAINING_ADAMW_H_

#include "kernels/cpu/base/thread_pool.h"
#include "kernels/training_backend.h"

namespace hippodrome::cpu {

// The contract of TrainingBackend::AdamW, in one pass.
void AdamW(ThreadPool& pool, const AdamWStep& step, Tensor gradient, Tensor m, Tensor v, Tensor w);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_TRAINING_ADAMW_H_
