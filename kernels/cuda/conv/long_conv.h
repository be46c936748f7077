// Convolution over time of every channel with the kernel of its head (BiGS). Two methods compute
// it; their files say how they differ.
#ifndef HIPPODROME_KERNELS_CUDA_CONV_LONG_CONV_H_
#define HIPPODROME_KERNELS_CUDA_CONV_LONG_CONV_H_

#include "kernels/cuda/conv/convolution.h"
#include "kernels/cuda/conv/long_conv_method.h"
#include "kernels/cuda/conv/long_conv_weights.h"

namespace hippodrome::cuda {

// What Backend::LongConv is given.
struct LongConvCall {
  const LongConvKernels& constants;
  Tensor u;  // [B T, d] activations
  int64_t sequences = 0;
  Direction direction = Direction::kForward;
  Tensor y;  // [B T, d] activations

  int64_t tokens() const { return u.rows / sequences; }
};

// A product with the Toeplitz matrix of the kernel, on tensor cores (long_conv_toeplitz.cu): any
// length.
void LongConvToeplitz(Device& device, const LongConvCall& call);

// One transform for each channel (long_conv_fft.cu). REQUIRES: CanTransformLongConv().
// shared_bytes: Device::shared_bytes().
bool CanTransformLongConv(int64_t tokens, size_t shared_bytes);
void LongConvFft(Device& device, const LongConvCall& call);

// The faster method that the device can run.
LongConvMethod ChooseLongConv(int64_t tokens, DType activations, size_t shared_bytes);

// The contract of Backend::LongConv, by that method.
void LongConv(Device& device, const LongConvCall& call);

// The gradients of the long convolution, as TrainingBackend::LongConvBackward says.

struct LongConvKernelGradients final : LongConvGradients {
  LongConvKernelGradients(Device& device, const LongConvKernels& constants)
      : kernels(device, constants.heads(), constants.longest()) {}

  KernelGradientSums kernels;
};

struct LongConvBackwardCall {
  const LongConvKernels& constants;
  Tensor u;  // [B T, d] activations
  int64_t sequences = 0;
  Direction direction = Direction::kForward;
  Tensor dy;    // f32 [B T, d]
  Gradient du;  // f32 [B T, d]
};

// `sums`: of these constants.
void LongConvBackward(Device& device, const LongConvBackwardCall& call,
                      LongConvKernelGradients& sums);

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_CONV_LONG_CONV_H_
