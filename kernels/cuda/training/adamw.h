// The AdamW optimizer.
#ifndef HIPPODROME_KERNELS_CUDA_TRAINING_ADAMW_H_
#define HIPPODROME_KERNELS_CUDA_TRAINING_ADAMW_H_

#include "kernels/cuda/base/device.h"
#include "kernels/training_backend.h"

namespace hippodrome::cuda {

// The contract of TrainingBackend::AdamW, in one pass over f32 matrices.
void AdamW(Device& device, const AdamWStep& step, Tensor gradient, Tensor m, Tensor v, Tensor w);

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_TRAINING_ADAMW_H_
