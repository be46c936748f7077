// Normalisation of rows.
#ifndef HIPPODROME_KERNELS_CUDA_ROWS_LAYER_NORM_H_
#define HIPPODROME_KERNELS_CUDA_ROWS_LAYER_NORM_H_

#include "kernels/cuda/base/device.h"
#include "kernels/training_backend.h"

namespace hippodrome::cuda {

// The contract of Backend::LayerNorm, d <= 16384. x, gamma, beta: f32; y: kF32 (may be x) or kBF16.
void LayerNorm(Device& device, Tensor x, Tensor gamma, Tensor beta, double epsilon, Tensor y);

// The contract of TrainingBackend::LayerNormBackward, all f32; dgamma and dbeta may be empty.
void LayerNormBackward(Device& device, Tensor x, Tensor gamma, double epsilon, Tensor dy,
                       const Gradient& dx, Tensor dgamma, Tensor dbeta);

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_ROWS_LAYER_NORM_H_
