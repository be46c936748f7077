#include "kernels/cuda/rows/mean_pool.h"

#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/base/tensor_memory.h"
#include "kernels/cuda/rows/mean_pool.cuh"

namespace hippodrome::cuda {
namespace {

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
