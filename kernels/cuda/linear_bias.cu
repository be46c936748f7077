#include "kernels/cuda/linear_bias.h"

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/linear_bias.cuh"
#include "kernels/cuda/tensor_memory.h"

namespace hippodrome::cuda {

void AddBias(Device& device, Tensor bias, Tensor y) {
  constexpr int64_t kThreads = 256;
  assert(bias.cols == y.cols);
  if (y.rows == 0) return;
  Launch(device, "add_bias", AddBiasKernel,
         {.blocks = dim3(static_cast<unsigned>(y.rows),
                         static_cast<unsigned>((y.cols + kThreads - 1) / kThreads)),
          .threads = dim3(kThreads)},
         BiasArguments{.bias = DeviceRow<float>(bias, 0),
                       .y = DeviceRow<float>(y, 0),
                       .y_stride = y.stride,
                       .cols = static_cast<int>(y.cols)});
}

}  // namespace hippodrome::cuda
