// The kernels of LayerNormBackward, with h = (x - mean) scale, scale = 1 / sqrt(var + epsilon):
//   g = dy gamma;  dx = scale (g - mean(g) - h mean(g h))
#ifndef HIPPODROME_KERNELS_CUDA_ROWS_LAYER_NORM_BACKWARD_CUH_
#define HIPPODROME_KERNELS_CUDA_ROWS_LAYER_NORM_BACKWARD_CUH_

#include "kernels/cuda/base/elements.cuh"
#include "kernels/cuda/rows/layer_norm.cuh"

namespace hippodrome::cuda {

inline constexpr int kNormBackwardThreads = 256;

// Of one row.
struct NormStatistics {
  float mean;
  float scale;
};

// One block per row, of whole warps.
__global__ void __launch_bounds__(kNormBackwardThreads)
    NormStatisticsKernel(Elements<const float> x, int d, float epsilon,
                         NormStatistics* statistics) {
  __shared__ float partial[2][kWarp];
  const int64_t row = blockIdx.x;
  const int threads = static_cast<int>(blockDim.x);
  const float count = static_cast<float>(d);
  float sum = 0;
  for (int c = static_cast<int>(threadIdx.x); c < d; c += threads) sum += x.At(row, c);
  const float mean = BlockSum(sum, partial[0]) / count;
  float squares = 0;
  for (int c = static_cast<int>(threadIdx.x); c < d; c += threads) {
    const float value = x.At(row, c) - mean;
    squares = fmaf(value, value, squares);
  }
  const float scale = 1.0f / sqrtf(BlockSum(squares, partial[1]) / count + epsilon);
  if (threadIdx.x == 0) statistics[row] = {mean, scale};
}

struct NormBackwardArguments {
  Elements<const float> x;
  const float* gamma;
  const NormStatistics* statistics;
  Elements<const float> dy;
  int d;
  Elements<float> dx;  // may be dy
  bool add;
};

// One block per row, of whole warps.
__global__ void __launch_bounds__(kNormBackwardThreads)
    NormBackwardKernel(NormBackwardArguments a) {
  __shared__ float partial[2][kWarp];
  const int64_t row = blockIdx.x;
  const int threads = static_cast<int>(blockDim.x);
  const NormStatistics s = a.statistics[row];
  const auto normalised = [&](int c) { return (a.x.At(row, c) - s.mean) * s.scale; };
  float sum = 0;
  float dot = 0;
  for (int c = static_cast<int>(threadIdx.x); c < a.d; c += threads) {
    const float g = a.dy.At(row, c) * a.gamma[c];
    sum += g;
    dot = fmaf(g, normalised(c), dot);
  }
  const float count = static_cast<float>(a.d);
  const float mean = BlockSum(sum, partial[0]) / count;
  const float slope = BlockSum(dot, partial[1]) / count;
  for (int c = static_cast<int>(threadIdx.x); c < a.d; c += threads) {
    const float g = a.dy.At(row, c) * a.gamma[c];
    const float dx = s.scale * (g - mean - normalised(c) * slope);
    float& to = a.dx.At(row, c);
    to = a.add ? to + dx : dx;
  }
}

// dgamma and dbeta are sums over rows of these.
struct GammaTerm {
  Elements<const float> x;
  const NormStatistics* statistics;
  Elements<const float> dy;
  __device__ float operator()(int64_t row, int64_t column) const {
    const NormStatistics s = statistics[row];
    return dy.At(row, column) * ((x.At(row, column) - s.mean) * s.scale);
  }
};
struct BetaTerm {
  Elements<const float> dy;
  __device__ float operator()(int64_t row, int64_t column) const { return dy.At(row, column); }
};

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_ROWS_LAYER_NORM_BACKWARD_CUH_
