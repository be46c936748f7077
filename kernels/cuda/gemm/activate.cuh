// The kernel of activate.h.
#ifndef HIPPODROME_KERNELS_CUDA_GEMM_ACTIVATE_CUH_
#define HIPPODROME_KERNELS_CUDA_GEMM_ACTIVATE_CUH_

#include "kernels/cuda/gemm/linear_epilogue.cuh"

namespace hippodrome::cuda {

template <typename Y>
struct ActivateArguments {
  const Y* x;  // rows of x_stride; may be epilogue.y
  int64_t x_stride;
  int cols;
  EpilogueArguments<Y> epilogue;
};

// One block per row and blockDim.x columns at a time.
template <typename Y>
__global__ void ActivateKernel(ActivateArguments<Y> a) {
  const int64_t row = blockIdx.x;
  for (int column = static_cast<int>(threadIdx.x); column < a.cols;
       column += static_cast<int>(blockDim.x)) {
    const float x = Widen(a.x[row * a.x_stride + column]);
    Store(a.epilogue, x, LoadEpilogue(a.epilogue, row, column), row, column);
  }
}

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_GEMM_ACTIVATE_CUH_
