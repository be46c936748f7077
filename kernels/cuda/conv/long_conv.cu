#include "kernels/cuda/conv/long_conv.h"

#include <cassert>

namespace hippodrome::cuda {

LongConvMethod ChooseLongConv(int64_t tokens, DType activations, size_t shared_bytes) {
  return CanTransformLongConv(tokens, shared_bytes) ? FasterLongConv(tokens, activations)
                                                    : LongConvMethod::kToeplitz;
}

void LongConv(Device& device, const LongConvCall& call) {
  assert(call.sequences >= 0 && call.u.rows == call.y.rows && call.u.cols == call.y.cols);
  assert(call.u.cols == call.constants.channels());
  if (call.u.rows == 0) return;
  assert(call.u.rows % call.sequences == 0 && call.tokens() <= call.constants.longest());
  assert(call.u.dtype == call.constants.activations() && call.y.dtype == call.u.dtype);
  switch (ChooseLongConv(call.tokens(), call.u.dtype, device.shared_bytes())) {
    case LongConvMethod::kToeplitz:
      return LongConvToeplitz(device, call);
    case LongConvMethod::kFft:
      return LongConvFft(device, call);
  }
}

void LongConvBackward(Device& device, const LongConvBackwardCall& call,
                      LongConvKernelGradients& sums) {
  assert(call.u.cols == call.constants.channels() && call.u.dtype == call.constants.activations());
  assert(call.dy.rows == call.u.rows && call.dy.dtype == DType::kF32);
  ConvolveBackward(device,
                   {.kernels = call.constants.BackwardKernels(device),
                    .u = call.u,
                    .sequences = call.sequences,
                    .direction = call.direction},
                   {.dy = call.dy, .y = {}, .du = call.du}, sums.kernels);
}

}  // namespace hippodrome::cuda
