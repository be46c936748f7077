#include "kernels/cuda/conv/long_conv_backward.h"

#include <cassert>

namespace hippodrome::cuda {

void LongConvBackward(Device& device, const LongConvBackwardCall& call, LongConvSums& sums) {
  assert(call.u.cols == call.constants.channels() && call.u.dtype == call.constants.activations());
  assert(call.dy.rows == call.u.rows && call.dy.dtype == DType::kF32);
  ConvolveSeriesBackward(device,
                         {.kernels = call.constants.Series(device),
                          .u = call.u,
                          .sequences = call.sequences,
                          .direction = call.direction},
                         {.dy = call.dy, .y = {}, .du = call.du}, sums.kernels);
}

}  // namespace hippodrome::cuda
