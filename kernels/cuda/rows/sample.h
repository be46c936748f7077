// The choice of the next tokens, and how likely tokens were.
#ifndef HIPPODROME_KERNELS_CUDA_ROWS_SAMPLE_H_
#define HIPPODROME_KERNELS_CUDA_ROWS_SAMPLE_H_

#include "kernels/backend.h"
#include "kernels/cuda/base/device.h"

namespace hippodrome::cuda {

// The contract of Backend::Sample. logits: f32 [B, >= vocab]; rows: kI32 [B, kSamplingColumns];
// tokens: kI32 [1, B].
void Sample(Device& device, Tensor logits, int64_t vocab, Tensor rows,
            const LogitAdjustments& adjustments, Tensor tokens);

// The contract of Backend::LogProbabilities. log_probabilities: f32 [B, 1 + k].
void LogProbabilities(Device& device, Tensor logits, int64_t vocab, Tensor tokens, Tensor likeliest,
                      Tensor log_probabilities);

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_ROWS_SAMPLE_H_
