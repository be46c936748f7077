// The mean of a sequence's rows.
#ifndef HIPPODROME_KERNELS_CUDA_ROWS_MEAN_POOL_H_
#define HIPPODROME_KERNELS_CUDA_ROWS_MEAN_POOL_H_

#include "kernels/cuda/base/device.h"
#include "kernels/training_backend.h"

namespace hippodrome::cuda {

// The contract of Backend::MeanPool. x: f32; mask: kI32; y: kF32 or kBF16.
void MeanPool(Device& device, Tensor x, Tensor mask, Tensor y);

// The contract of TrainingBackend::MeanPoolBackward. dy, dx: f32; mask: kI32.
void MeanPoolBackward(Device& device, Tensor mask, Tensor dy, const Gradient& dx);

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_ROWS_MEAN_POOL_H_
