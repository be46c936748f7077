// The kernels of mean_pool.h: the warps of a block share the tokens of one sequence, its lanes are
// adjacent columns.
#ifndef HIPPODROME_KERNELS_CUDA_ROWS_MEAN_POOL_CUH_
#define HIPPODROME_KERNELS_CUDA_ROWS_MEAN_POOL_CUH_

#include "kernels/cuda/base/device_code.cuh"

namespace hippodrome::cuda {

inline constexpr int kPoolWarps = 16;

template <typename Y>
struct MeanPoolArguments {
  const float* x;  // rows of x_stride
  int64_t x_stride;
  const int32_t* mask;  // rows of mask_stride
  int64_t mask_stride;
  int tokens;
  int d;
  Y* y;  // rows of y_stride
  int64_t y_stride;
};

// Blocks: (sequences, columns / kWarp, rounded up); kPoolWarps warps. The order of the sum follows
// from the number of tokens alone.
template <typename Y>
__global__ void __launch_bounds__(kPoolWarps* kWarp) MeanPoolKernel(MeanPoolArguments<Y> a) {
  __shared__ float sums[kPoolWarps][kWarp];
  __shared__ int counts[kPoolWarps];
  const int64_t sequence = blockIdx.x;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int column = static_cast<int>(blockIdx.y) * kWarp + lane;
  const int32_t* mask = a.mask + sequence * a.mask_stride;
  const float* x = a.x + sequence * a.tokens * a.x_stride + column;
  float sum = 0;
  int count = 0;
  for (int t = warp; t < a.tokens; t += kPoolWarps) {
    if (mask[t] == 0) continue;
    ++count;
    if (column < a.d) sum += x[t * a.x_stride];
  }
  sums[warp][lane] = sum;
  if (lane == 0) counts[warp] = count;
  __syncthreads();
  if (warp > 0 || column >= a.d) return;
  for (int w = 1; w < kPoolWarps; ++w) {
    sum += sums[w][lane];
    count += counts[w];
  }
  const float mean = count == 0 ? 0.0f : sum / static_cast<float>(count);
  a.y[sequence * a.y_stride + column] = FromFloat<Y>(mean);
}

struct MeanPoolBackwardArguments {
  const int32_t* mask;  // rows of mask_stride
  int64_t mask_stride;
  int tokens;
  int d;
  const float* dy;  // rows of dy_stride
  int64_t dy_stride;
  float* dx;  // rows of dx_stride
  int64_t dx_stride;
  bool add;
};

// dx = mask dy / (sum of the mask). Blocks and threads as MeanPoolKernel.
__global__ void __launch_bounds__(kPoolWarps* kWarp)
    MeanPoolBackwardKernel(MeanPoolBackwardArguments a) {
  const int64_t sequence = blockIdx.x;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int column = static_cast<int>(blockIdx.y) * kWarp + lane;
  const int32_t* mask = a.mask + sequence * a.mask_stride;
  int count = 0;
  for (int first = 0; first < a.tokens; first += kWarp) {
    const int t = first + lane;
    count += __popc(__ballot_sync(kAllLanes, t < a.tokens && mask[t] != 0));
  }
  if (column >= a.d) return;
  const float mean =
      count == 0 ? 0.0f : a.dy[sequence * a.dy_stride + column] / static_cast<float>(count);
  float* dx = a.dx + sequence * a.tokens * a.dx_stride + column;
  for (int t = static_cast<int>(threadIdx.x) / kWarp; t < a.tokens; t += kPoolWarps) {
    float& to = dx[t * a.dx_stride];
    to = (a.add ? to : 0.0f) + (mask[t] == 0 ? 0.0f : mean);
  }
}

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_ROWS_MEAN_POOL_CUH_
