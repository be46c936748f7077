#include "kernels/cuda/conv/long_conv.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>

namespace hippodrome::cuda {
namespace {

// Both not measured: picoseconds for a point (one channel at one time) on an H200.
//
// Half of the Toeplitz matrix, and the rest of the tiles on its diagonal, for each product of terms
// that a product takes: at 400 TFLOP/s.
double ToeplitzTime(int64_t tokens, DType activations) {
  const double products = activations == DType::kBF16 ? 2 : 6;
  return products * static_cast<double>(tokens + 128) / 400;
}
// 8.5 log2 L + 11 operations for each of the L points of a transform that holds the tokens: at 23
// TFLOP/s.
double FftTime(int64_t tokens) {
  const double points =
      static_cast<double>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(tokens, 512))));
  return points / static_cast<double>(tokens) * (8.5 * std::log2(points) + 11) / 23;
}

}  // namespace

LongConvMethod ChooseLongConv(int64_t tokens, DType activations, size_t shared_bytes) {
  const bool transform = CanTransformLongConv(tokens, shared_bytes) &&
                         FftTime(tokens) < ToeplitzTime(tokens, activations);
  return transform ? LongConvMethod::kFft : LongConvMethod::kToeplitz;
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
