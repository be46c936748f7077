// Attention of every token to every unmasked one of its sequence.
#ifndef HIPPODROME_KERNELS_CUDA_ATTENTION_BIDIRECTIONAL_ATTENTION_H_
#define HIPPODROME_KERNELS_CUDA_ATTENTION_BIDIRECTIONAL_ATTENTION_H_

#include "kernels/backend.h"
#include "kernels/cuda/base/device.h"

namespace hippodrome::cuda {

// What Backend::BidirectionalAttention is given. B sequences (mask.rows) of T = mask.cols tokens.
struct BidirectionalAttentionCall {
  const AttentionShape& shape;  // without rotary positions, head_dim <= 256
  Tensor qkv;                   // [B T, 3 d] activations
  Tensor mask;                  // kI32 [B, T]
  Tensor o;                     // [B T, d] activations
};

void BidirectionalAttention(Device& device, const BidirectionalAttentionCall& call);

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_ATTENTION_BIDIRECTIONAL_ATTENTION_H_
