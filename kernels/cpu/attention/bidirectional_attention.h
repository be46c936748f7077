// Multi-head attention of every token to every unmasked token of its sequence.
#ifndef HIPPODROME_KERNELS_CPU_ATTENTION_BIDIRECTIONAL_ATTENTION_H_
#define HIPPODROME_KERNELS_CPU_ATTENTION_BIDIRECTIONAL_ATTENTION_H_

#include "kernels/cpu/base/thread_pool.h"
#include "kernels/training_backend.h"

namespace hippodrome::cpu {

// The contract of Backend::BidirectionalAttention.
void BidirectionalAttention(ThreadPool& pool, const AttentionShape& shape, Tensor qkv, Tensor mask,
                            Tensor o);

// The contract of TrainingBackend::BidirectionalAttentionBackward.
void BidirectionalAttentionBackward(ThreadPool& pool, const AttentionShape& shape, Tensor qkv,
                                    Tensor mask, Tensor d_o, Gradient dqkv);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_ATTENTION_BIDIRECTIONAL_ATTENTION_H_
