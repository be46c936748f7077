// Multi-head attention over whole sequences, whose keys and values lie in no pages: of every token
// to every unmasked one, and the causal one of training.
#ifndef HIPPODROME_KERNELS_CPU_ATTENTION_DENSE_ATTENTION_H_
#define HIPPODROME_KERNELS_CPU_ATTENTION_DENSE_ATTENTION_H_

#include "kernels/cpu/base/thread_pool.h"
#include "kernels/training_backend.h"

namespace hippodrome::cpu {

// The contract of Backend::BidirectionalAttention.
void BidirectionalAttention(ThreadPool& pool, const AttentionShape& shape, Tensor qkv, Tensor mask,
                            Tensor o);

// The contract of TrainingBackend::BidirectionalAttentionBackward.
void BidirectionalAttentionBackward(ThreadPool& pool, const AttentionShape& shape, Tensor qkv,
                                    Tensor mask, Tensor d_o, Gradient dqkv);

// The contracts of TrainingBackend's operations of these names.
void CausalAttention(ThreadPool& pool, const AttentionShape& shape, Tensor qkv, Tensor inv_freq,
                     int64_t sequences, const AttentionDropout& dropout, Tensor o);
void CausalAttentionBackward(ThreadPool& pool, const AttentionShape& shape, Tensor qkv,
                             Tensor inv_freq, int64_t sequences, const AttentionDropout& dropout,
                             Tensor d_o, Gradient dqkv);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_ATTENTION_DENSE_ATTENTION_H_
