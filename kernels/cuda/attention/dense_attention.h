// Multi-head attention over whole sequences, whose keys and values lie in no pages: of every token
// to every unmasked one, and in f32 for training, with its gradients.
#ifndef HIPPODROME_KERNELS_CUDA_ATTENTION_DENSE_ATTENTION_H_
#define HIPPODROME_KERNELS_CUDA_ATTENTION_DENSE_ATTENTION_H_

#include "kernels/cuda/base/device.h"
#include "kernels/training_backend.h"

namespace hippodrome::cuda {

// What Backend::BidirectionalAttention is given. B sequences (mask.rows) of T = mask.cols tokens.
struct BidirectionalAttentionCall {
  const AttentionShape& shape;  // without rotary positions, head_dim <= 256
  Tensor qkv;                   // [B T, 3 d] activations
  Tensor mask;                  // kI32 [B, T]
  Tensor o;                     // [B T, d] activations
};

// The contract of Backend::BidirectionalAttention.
void BidirectionalAttention(Device& device, const BidirectionalAttentionCall& call);

// What training computes and goes back over: B sequences of T tokens, causal from position 0 on, or
// with a mask.
struct AttentionProblem {
  const AttentionShape& shape;  // head_dim <= 256
  Tensor qkv;                   // [B T, 3 d] activations
  Tensor inv_freq;              // [1, rotary_dim / 2] f32, or empty
  Tensor mask;                  // kI32 [B, T], or empty: causal
  int64_t sequences = 0;
  AttentionDropout dropout = {};  // where causal

  int64_t tokens() const { return qkv.rows / sequences; }
};

// o: activations [B T, d].
void AttentionForward(Device& device, const AttentionProblem& problem, Tensor o);

// d_o: f32 [B T, d]; dqkv: f32 [B T, 3 d].
void AttentionBackward(Device& device, const AttentionProblem& problem, Tensor d_o,
                       const Gradient& dqkv);

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_ATTENTION_DENSE_ATTENTION_H_
