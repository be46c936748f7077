#include "kernels/cuda/rows/layer_norm.h"

#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/base/tensor_memory.h"
#include "kernels/cuda/rows/layer_norm.cuh"

namespace hippodrome::cuda {
namespace {

template <typename T>
void Normalise(Device& device, const Tensor& x, const Tensor& gamma, const Tensor& beta,
               double epsilon, const Tensor& y) {
  const LayerNormArguments<T> arguments = {.x = DeviceRow<float>(x, 0),
                                           .x_stride = x.stride,
                                           .gamma = DeviceRow<float>(gamma, 0),
                                           .beta = DeviceRow<float>(beta, 0),
                                           .epsilon = static_cast<float>(epsilon),
                                           .d = static_cast<int>(x.cols),
                                           .y = DeviceRow<T>(y, 0),
                                           .y_stride = y.stride};
  const int64_t threads = (x.cols + kNormValues - 1) / kNormValues;
  const Grid grid = {.blocks = dim3(static_cast<unsigned>(x.rows)),
                     .threads = dim3(static_cast<unsigned>((threads + kWarp - 1) / kWarp * kWarp))};
  const bool aligned = RowsAreAligned(x, 4) && RowsAreAligned(gamma, 4) &&
                       RowsAreAligned(beta, 4) && RowsAreAligned(y, 4);
  Launch(device, "layer_norm", aligned ? LayerNormKernel<T, 4> : LayerNormKernel<T, 1>, grid,
         arguments);
}

}  // namespace

void LayerNorm(Device& device, Tensor x, Tensor gamma, Tensor beta, double epsilon, Tensor y) {
  assert(x.rows == y.rows && x.cols == y.cols && gamma.cols == x.cols && beta.cols == x.cols);
  assert(x.cols <= kMaxNormWidth);
  if (x.rows == 0) return;
  if (y.dtype == DType::kBF16) {
    Normalise<BF16>(device, x, gamma, beta, epsilon, y);
  } else {
    Normalise<float>(device, x, gamma, beta, epsilon, y);
  }
}

}  // namespace hippodrome::cuda
