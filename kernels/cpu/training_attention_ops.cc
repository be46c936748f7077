// The training operations of CpuBackend on attention; each forwards to the file of its forward.
#include "kernels/cpu/bidirectional_attention.h"
#include "kernels/cpu/causal_attention.h"
#include "kernels/cpu/cpu_backend.h"

namespace hippodrome {

void CpuBackend::CausalAttention(const AttentionShape& shape, Tensor qkv, Tensor inv_freq,
                                 int64_t sequences, const AttentionDropout& dropout, Tensor o) {
  cpu::CausalAttention(pool_, shape, qkv, inv_freq, sequences, dropout, o);
}

void CpuBackend::CausalAttentionBackward(const AttentionShape& shape, Tensor qkv, Tensor inv_freq,
                                         int64_t sequences, const AttentionDropout& dropout,
                                         Tensor d_o, Gradient dqkv) {
  cpu::CausalAttentionBackward(pool_, shape, qkv, inv_freq, sequences, dropout, d_o, dqkv);
}

void CpuBackend::BidirectionalAttentionBackward(const AttentionShape& shape, Tensor qkv,
                                                Tensor mask, Tensor d_o, Gradient dqkv) {
  cpu::BidirectionalAttentionBackward(pool_, shape, qkv, mask, d_o, dqkv);
}

}  // namespace hippodrome
