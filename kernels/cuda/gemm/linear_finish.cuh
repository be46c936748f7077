// The kernel of linear_finish.h.
#ifndef HIPPODROME_KERNELS_CUDA_GEMM_LINEAR_FINISH_CUH_
#define HIPPODROME_KERNELS_CUDA_GEMM_LINEAR_FINISH_CUH_

#include "kernels/cuda/gemm/linear_epilogue.cuh"

namespace hippodrome::cuda {

inline constexpr int kFinishThreads = 256;
inline constexpr int kFinishColumns = 4;  // of each thread

// Blocks: (rows, columns / (kFinishThreads * kFinishColumns), rounded up). sums: rows of
// sums_stride.
template <typename Y>
__global__ void __launch_bounds__(kFinishThreads)
    FinishLinearKernel(const float* sums, int64_t sums_stride, int columns,
                       EpilogueArguments<Y> epilogue) {
  const int64_t row = blockIdx.x;
  const int first = static_cast<int>(blockIdx.y) * kFinishThreads * kFinishColumns +
                    static_cast<int>(threadIdx.x);
  float sum[kFinishColumns];
  EpilogueValues values[kFinishColumns];
#pragma unroll
  for (int i = 0; i < kFinishColumns; ++i) {
    const int column = first + i * kFinishThreads;
    if (column >= columns) break;
    sum[i] = sums[row * sums_stride + column];
    values[i] = LoadEpilogue(epilogue, row, column);
  }
#pragma unroll
  for (int i = 0; i < kFinishColumns; ++i) {
    const int column = first + i * kFinishThreads;
    if (column >= columns) break;
    Store(epilogue, sum[i], values[i], row, column);
  }
}

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_GEMM_LINEAR_FINISH_CUH_
