// The training operations of CudaBackend on attention; each forwards to attention_gradient.h.
#include "kernels/cuda/attention_gradient.h"
#include "kernels/cuda/cuda_backend.h"

namespace hippodrome {

void CudaBackend::CausalAttention(const AttentionShape& shape, Tensor qkv, Tensor inv_freq,
                                  int64_t sequences, const AttentionDropout& dropout, Tensor o) {
  cuda::AttentionForward(device_, {shape, qkv, inv_freq, /*mask=*/{}, sequences, dropout}, o);
}

void CudaBackend::CausalAttentionBackward(const AttentionShape& shape, Tensor qkv, Tensor inv_freq,
                                          int64_t sequences, const AttentionDropout& dropout,
                                          Tensor d_o, Gradient dqkv) {
  cuda::AttentionBackward(device_, {shape, qkv, inv_freq, /*mask=*/{}, sequences, dropout}, d_o,
                          dqkv);
}

void CudaBackend::BidirectionalAttentionBackward(const AttentionShape& shape, Tensor qkv,
                                                 Tensor mask, Tensor d_o, Gradient dqkv) {
  cuda::AttentionBackward(device_, {shape, qkv, /*inv_freq=*/{}, mask, mask.rows}, d_o, dqkv);
}

}  // namespace hippodrome
