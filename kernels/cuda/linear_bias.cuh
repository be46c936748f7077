// The kernel of linear_bias.h.
#ifndef HIPPODROME_KERNELS_CUDA_LINEAR_BIAS_CUH_
#define HIPPODROME_KERNELS_CUDA_LINEAR_BIAS_CUH_

#include "kernels/cuda/device_code.cuh"

namespace hippodrome::cuda {

struct BiasArguments {
  const float* bias;  // [cols]
  float* y;           // rows of y_stride
  int64_t y_stride;
  int cols;
};

// Blocks: (rows, columns / threads, rounded up).
__global__ void __launch_bounds__(256) AddBiasKernel(BiasArguments a) {
  const int column = static_cast<int>(blockIdx.y * blockDim.x + threadIdx.x);
  if (column >= a.cols) return;
  a.y[int64_t{blockIdx.x} * a.y_stride + column] += a.bias[column];
}

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_LINEAR_BIAS_CUH_
