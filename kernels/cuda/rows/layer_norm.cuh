// The kernel of layer_norm.h: a block normalises a row that it holds in registers.
#ifndef HIPPODROME_KERNELS_CUDA_ROWS_LAYER_NORM_CUH_
#define HIPPODROME_KERNELS_CUDA_ROWS_LAYER_NORM_CUH_

#include "kernels/cuda/base/row_vector.cuh"

namespace hippodrome::cuda {

// Values of a row that one thread holds, and the most that a block of 1024 threads does.
inline constexpr int kNormValues = 16;
inline constexpr int kMaxNormWidth = 1024 * kNormValues;

template <typename T>
struct LayerNormArguments {
  const float* x;  // rows of x_stride
  int64_t x_stride;
  const float* gamma;
  const float* beta;
  float epsilon;
  int d;
  T* y;  // rows of y_stride; may be x
  int64_t y_stride;
};

// The sum of x over the block, in an order that its size alone decides. partial: [kWarp], shared,
// of this call alone. Every thread must come.
__device__ inline float BlockSum(float x, float* partial) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warps = static_cast<int>(blockDim.x) / kWarp;
  x = WarpSum(x);
  if (lane == 0) partial[threadIdx.x / kWarp] = x;
  __syncthreads();
  return WarpSum(lane < warps ? partial[lane] : 0.0f);
}

// One block per row, of at least d / kNormValues threads in whole warps. With kWidth 4, d is a
// multiple of 4 and all rows are aligned for vectors of 4 elements.
template <typename T, int kWidth>
__global__ void __launch_bounds__(1024) LayerNormKernel(LayerNormArguments<T> a) {
  constexpr int kGroups = kNormValues / kWidth;
  __shared__ float partial[2][kWarp];
  const float* x = a.x + int64_t{blockIdx.x} * a.x_stride;
  T* y = a.y + int64_t{blockIdx.x} * a.y_stride;
  const int threads = static_cast<int>(blockDim.x);
  const auto column = [&](int group) {
    return (group * threads + static_cast<int>(threadIdx.x)) * kWidth;
  };
  RowVector<float, kWidth> v[kGroups] = {};
#pragma unroll
  for (int j = 0; j < kGroups; ++j) {
    if (column(j) < a.d) v[j] = LoadVector<float, kWidth>(x + column(j));
  }
#pragma unroll
  for (int j = 0; j < kGroups; ++j) {
    if (column(j) >= a.d) continue;
    Prefetch(a.gamma + column(j));
    Prefetch(a.beta + column(j));
  }
  float sum = 0;
#pragma unroll
  for (int j = 0; j < kGroups; ++j) {
    for (float value : v[j].values) sum += value;
  }
  const float count = static_cast<float>(a.d);
  const float mean = BlockSum(sum, partial[0]) / count;
  float squares = 0;
#pragma unroll
  for (int j = 0; j < kGroups; ++j) {
    if (column(j) >= a.d) continue;
    for (float value : v[j].values) squares = fmaf(value - mean, value - mean, squares);
  }
  const float scale = 1.0f / sqrtf(BlockSum(squares, partial[1]) / count + a.epsilon);
#pragma unroll
  for (int j = 0; j < kGroups; ++j) {
    if (column(j) >= a.d) continue;
    const auto gamma = LoadVector<float, kWidth>(a.gamma + column(j));
    const auto beta = LoadVector<float, kWidth>(a.beta + column(j));
    RowVector<T, kWidth> out;
    for (int i = 0; i < kWidth; ++i) {
      const float normalised = (v[j].values[i] - mean) * scale;
      out.values[i] = FromFloat<T>(fmaf(normalised, gamma.values[i], beta.values[i]));
    }
    StoreVector(out, y + column(j));
  }
}

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_ROWS_LAYER_NORM_CUH_
