// Dropout.
#ifndef HIPPODROME_KERNELS_CUDA_ROWS_DROPOUT_H_
#define HIPPODROME_KERNELS_CUDA_ROWS_DROPOUT_H_

#include "kernels/cuda/base/device.h"

namespace hippodrome::cuda {

// The contract of TrainingBackend::Drop, 0 <= p < 1, on an f32 matrix.
void Drop(Device& device, double p, uint64_t seed, Tensor x);

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_ROWS_DROPOUT_H_
