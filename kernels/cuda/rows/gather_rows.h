// Chosen rows of a matrix.
#ifndef HIPPODROME_KERNELS_CUDA_ROWS_GATHER_ROWS_H_
#define HIPPODROME_KERNELS_CUDA_ROWS_GATHER_ROWS_H_

#include "kernels/cuda/base/device.h"

namespace hippodrome::cuda {

// The contract of Backend::GatherRows. x: f32; rows: kI32; y: kF32 or kBF16.
void GatherRows(Device& device, Tensor x, Tensor rows, Tensor y);

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_ROWS_GATHER_ROWS_H_
