// Linear attention over parts of sequences and over single tokens, and its gradients.
#ifndef HIPPODROME_KERNELS_CUDA_ATTENTION_LINEAR_ATTENTION_H_
#define HIPPODROME_KERNELS_CUDA_ATTENTION_LINEAR_ATTENTION_H_

#include "kernels/cuda/base/recurrent_slots.h"
#include "kernels/training_backend.h"

namespace hippodrome::cuda {

// The contracts of the operations of these names in backend.h and training_backend.h; states of
// LinearAttentionStateArrays().
void LinearAttentionSequence(Device& device, const LinearAttentionShape& shape, Tensor qkv,
                             RecurrentSlots& state, const SequenceParts& parts, Tensor o);
void LinearAttentionStep(Device& device, const LinearAttentionShape& shape, Tensor qkv,
                         RecurrentSlots& state, Tensor slots, Tensor o);
void CausalLinearAttention(Device& device, const LinearAttentionShape& shape, Tensor qkv,
                           int64_t sequences, Tensor o);
void CausalLinearAttentionBackward(Device& device, const LinearAttentionShape& shape, Tensor qkv,
                                   int64_t sequences, Tensor d_o, Gradient dqkv);

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_ATTENTION_LINEAR_ATTENTION_H_
