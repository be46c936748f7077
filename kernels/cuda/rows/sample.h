// The choice of the next tokens.
#ifndef HIPPODROME_KERNELS_CUDA_ROWS_SAMPLE_H_
#define HIPPODROME_KERNELS_CUDA_ROWS_SAMPLE_H_

#include "kernels/cuda/base/device.h"

namespace hippodrome::cuda {

// The contract of Backend::Sample. logits: f32 [B, >= vocab]; rows: kI32 [B, kSamplingColumns];
// tokens: kI32 [1, B].
void Sample(Device& device, Tensor logits, int64_t vocab, Tensor rows, Tensor tokens);

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_ROWS_SAMPLE_H_
