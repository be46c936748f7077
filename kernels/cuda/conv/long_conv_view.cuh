// What the kernels of the long convolution are given.
#ifndef HIPPODROME_KERNELS_CUDA_CONV_LONG_CONV_VIEW_CUH_
#define HIPPODROME_KERNELS_CUDA_CONV_LONG_CONV_VIEW_CUH_

#include "kernels/cuda/base/device_code.cuh"
#include "kernels/cuda/conv/long_conv.h"

namespace hippodrome::cuda {

// A LongConvCall. T: float or BF16.
template <typename T>
struct LongConvView {
  const T* u;  // rows of u_stride
  int64_t u_stride;
  T* y;  // rows of y_stride
  int64_t y_stride;
  int tokens;         // of each sequence
  int channels;       // d
  int head_channels;  // d / H
  bool backward;
};

template <typename T>
LongConvView<T> MakeView(const LongConvCall& call) {
  const LongConvKernels& constants = call.constants;
  return {.u = static_cast<const T*>(call.u.data),
          .u_stride = call.u.stride,
          .y = static_cast<T*>(call.y.data),
          .y_stride = call.y.stride,
          .tokens = static_cast<int>(call.tokens()),
          .channels = static_cast<int>(constants.channels()),
          .head_channels = static_cast<int>(constants.channels() / constants.heads()),
          .backward = call.direction == Direction::kBackward};
}

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_CONV_LONG_CONV_VIEW_CUH_
