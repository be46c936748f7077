// Causal multi-head attention of whole sequences, for training.
#ifndef HIPPODROME_KERNELS_CPU_ATTENTION_CAUSAL_ATTENTION_H_
#define HIPPODROME_KERNELS_CPU_ATTENTION_CAUSAL_ATTENTION_H_

#include "kernels/cpu/base/thread_pool.h"
#include "kernels/training_backend.h"

namespace hippodrome::cpu {

// The contracts of TrainingBackend's operations of these names.
void CausalAttention(ThreadPool& pool, const AttentionShape& shape, Tensor qkv, Tensor inv_freq,
                     int64_t sequences, const AttentionDropout& dropout, Tensor o);
void CausalAttentionBackward(ThreadPool& pool, const AttentionShape& shape, Tensor qkv,
                             Tensor inv_freq, int64_t sequences, const AttentionDropout& dropout,
                             Tensor d_o, Gradient dqkv);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_ATTENTION_CAUSAL_ATTENTION_H_
