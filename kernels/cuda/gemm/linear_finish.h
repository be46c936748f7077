// What follows a product, where a library does not do it itself.
#ifndef HIPPODROME_KERNELS_CUDA_GEMM_LINEAR_FINISH_H_
#define HIPPODROME_KERNELS_CUDA_GEMM_LINEAR_FINISH_H_

#include "kernels/backend.h"
#include "kernels/cuda/base/device.h"

namespace hippodrome::cuda {

// y = epilogue(sums).  sums: [rows, out] f32; y: [rows, out], kF32 or kBF16, rounded once; the
// tensors of the epilogue are of y's type.
void FinishLinear(Device& device, Tensor sums, const Epilogue& epilogue, Tensor y);

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_GEMM_LINEAR_FINISH_H_
