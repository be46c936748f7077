// The warps of a block share the tokens of one sequence, its lanes are
// adjacent columns.
#include "kernels/cuda/rows/mean_pool.h"

#include "kernels/cuda/base/device_code.cuh"
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/base/tensor_memory.h"

namespace hippodrome::cuda {
namespace {

constexpr int kPoolWarps = 16;

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

// Of both kernels.
Grid PoolGrid(int64_t sequences, int64_t cols) {
  return {.blocks = dim3(static_cast<unsigned>(sequences),
                         static_cast<unsigned>((cols + kWarp - 1) / kWarp)),
          .threads = dim3(kPoolWarps * kWarp)};
}

template <typename Y>
void Pool(Device& device, const Tensor& x, const Tensor& mask, const Tensor& y) {
  const MeanPoolArguments<Y> arguments = {.x = DeviceRow<float>(x, 0),
                                          .x_stride = x.stride,
                                          .mask = DeviceRow<int32_t>(mask, 0),
                                          .mask_stride = mask.stride,
                                          .tokens = static_cast<int>(mask.cols),
                                          .d = static_cast<int>(y.cols),
                                          .y = DeviceRow<Y>(y, 0),
                                          .y_stride = y.stride};
  Launch(device, "mean_pool", MeanPoolKernel<Y>, PoolGrid(y.rows, y.cols), arguments);
}

}  // namespace

void MeanPool(Device& device, Tensor x, Tensor mask, Tensor y) {
  assert(x.dtype == DType::kF32 && x.cols == y.cols);
  assert(mask.rows == y.rows && x.rows == mask.rows * mask.cols);
  if (y.rows == 0) return;
  if (y.dtype == DType::kBF16) {
    Pool<BF16>(device, x, mask, y);
  } else {
    Pool<float>(device, x, mask, y);
  }
}

void MeanPoolBackward(Device& device, Tensor mask, Tensor dy, const Gradient& dx) {
  if (dx.tensor.data == nullptr || dy.rows == 0) return;
  assert(dx.tensor.rows == mask.rows * mask.cols && dy.rows == mask.rows);
  assert(dx.tensor.cols == dy.cols);
  Launch(device, "mean_pool_backward", MeanPoolBackwardKernel, PoolGrid(dy.rows, dy.cols),
         MeanPoolBackwardArguments{.mask = DeviceRow<int32_t>(mask, 0),
                                   .mask_stride = mask.stride,
                                   .tokens = static_cast<int>(mask.cols),
                                   .d = static_cast<int>(dy.cols),
                                   .dy = DeviceRow<float>(dy, 0),
                                   .dy_stride = dy.stride,
                                   .dx = DeviceRow<float>(dx.tensor, 0),
                                   .dx_stride = dx.tensor.stride,
                                   .add = dx.add});
}

}  // namespace hippodrome::cuda
