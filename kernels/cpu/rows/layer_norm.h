// Layer normalisation of rows.
#ifndef HIPPODROME_KERNELS_CPU_ROWS_LAYER_NORM_H_
#define HIPPODROME_KERNELS_CPU_ROWS_LAYER_NORM_H_

#include "kernels/cpu/base/thread_pool.h"
#include "kernels/training_backend.h"

namespace hippodrome::cpu {

// The contract of Backend::LayerNorm.
void LayerNorm(ThreadPool& pool, Tensor x, Tensor gamma, Tensor beta, double epsilon, Tensor y);

// The contract of TrainingBackend::LayerNormBackward; dgamma and dbeta may be empty.
void LayerNormBackward(ThreadPool& pool, Tensor x, Tensor gamma, double epsilon, Tensor dy,
                       Gradient dx, Tensor dgamma, Tensor dbeta);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_ROWS_LAYER_NORM_H_
