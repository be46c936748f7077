// Layer normalisation of rows.
#ifndef HIPPODROME_KERNELS_CPU_LAYER_NORM_H_
#define HIPPODROME_KERNELS_CPU_LAYER_NORM_H_

#include "kernels/cpu/thread_pool.h"
#include "kernels/tensor.h"

namespace hippodrome::cpu {

// The contract of Backend::LayerNorm.
void LayerNorm(ThreadPool& pool, Tensor x, Tensor gamma, Tensor beta, double epsilon, Tensor y);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_LAYER_NORM_H_
