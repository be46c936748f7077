// The gradients of the long convolution, as TrainingBackend::LongConvBackward says.
#ifndef HIPPODROME_KERNELS_CUDA_CONV_LONG_CONV_BACKWARD_H_
#define HIPPODROME_KERNELS_CUDA_CONV_LONG_CONV_BACKWARD_H_

#include "kernels/cuda/conv/long_conv_weights.h"
#include "kernels/cuda/conv/series.h"

namespace hippodrome::cuda {

struct LongConvSums final : KernelGradients {
  LongConvSums(Device& device, const LongConvConstants& constants)
      : kernels(device, constants.heads(), constants.longest()) {}

  SeriesSums kernels;
};

struct LongConvBackwardCall {
  const LongConvConstants& constants;
  Tensor u;  // [B T, d] activations
  int64_t sequences = 0;
  Direction direction = Direction::kForward;
  Tensor dy;    // f32 [B T, d]
  Gradient du;  // f32 [B T, d]
};

// `sums`: of these constants.
void LongConvBackward(Device& device, const LongConvBackwardCall& call, LongConvSums& sums);

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_CONV_LONG_CONV_BACKWARD_H_
