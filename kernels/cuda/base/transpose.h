// Transposition.
#ifndef HIPPODROME_KERNELS_CUDA_BASE_TRANSPOSE_H_
#define HIPPODROME_KERNELS_CUDA_BASE_TRANSPOSE_H_

#include "kernels/cuda/base/device.h"

namespace hippodrome::cuda {

// y [cols, n] = x^T, and zero in the columns that x [rows, cols] has no rows for, n >= rows.
// x, y: kF32 or kBF16, each; bf16 is rounded to nearest even.
void Transpose(Device& device, Tensor x, Tensor y);

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_BASE_TRANSPOSE_H_
