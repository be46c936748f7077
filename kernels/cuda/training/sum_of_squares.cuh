// The kernels of SumOfSquares: parts of a matrix, then the parts. The order of every sum follows
// from the shape of the matrix alone.
#ifndef HIPPODROME_KERNELS_CUDA_TRAINING_SUM_OF_SQUARES_CUH_
#define HIPPODROME_KERNELS_CUDA_TRAINING_SUM_OF_SQUARES_CUH_

#include "kernels/cuda/base/elements.cuh"

namespace hippodrome::cuda {

inline constexpr int kSquareThreads = 256;
inline constexpr int kSquareColumns = 32 * kSquareThreads;  // of a block

// Over the block's kSquareThreads threads; thread 0 gets the result.
__device__ inline double BlockSum(double x) {
  __shared__ double warps[kSquareThreads / kWarp];
  for (int mask = kWarp / 2; mask > 0; mask /= 2) x += __shfl_xor_sync(kAllLanes, x, mask);
  if (threadIdx.x % kWarp == 0) warps[threadIdx.x / kWarp] = x;
  __syncthreads();
  double sum = 0;
  if (threadIdx.x == 0) {
    for (const double part : warps) sum += part;
  }
  return sum;
}

// Blocks: rows times columns / kSquareColumns, rounded up. Squares of floats are exact in double.
__global__ void __launch_bounds__(kSquareThreads)
    SquaresKernel(Elements<const float> x, int64_t cols, unsigned blocks_of_row, double* parts) {
  const int64_t row = blockIdx.x / blocks_of_row;
  const int64_t begin = int64_t{blockIdx.x % blocks_of_row} * kSquareColumns;
  const int64_t end = min(begin + kSquareColumns, cols);
  double sum = 0;
  for (int64_t column = begin + threadIdx.x; column < end; column += kSquareThreads) {
    const double value = x.At(row, column);
    sum += value * value;
  }
  sum = BlockSum(sum);
  if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

// One block.
__global__ void __launch_bounds__(kSquareThreads)
    SumPartsKernel(const double* parts, int64_t count, double* total) {
  double sum = 0;
  for (int64_t i = threadIdx.x; i < count; i += kSquareThreads) sum += parts[i];
  sum = BlockSum(sum);
  if (threadIdx.x == 0) *total = sum;
}

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_TRAINING_SUM_OF_SQUARES_CUH_
