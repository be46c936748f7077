// Normalisation of rows.
#ifndef HIPPODROME_KERNELS_CUDA_LAYER_NORM_H_
#define HIPPODROME_KERNELS_CUDA_LAYER_NORM_H_

#include "kernels/cuda/device.h"

namespace hippodrome::cuda {

// The contract of Backend::LayerNorm, d <= 16384. x, gamma, beta: f32; y: kF32 (may be x) or kBF16.
void LayerNorm(Device& device, Tensor x, Tensor gamma, Tensor beta, double epsilon, Tensor y);

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_LAYER_NORM_H_
