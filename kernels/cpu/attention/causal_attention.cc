#include "kernels/cpu/attention/causal_attention.h"

#include <cassert>

#include "kernels/cpu/attention/head_attention.h"

namespace hippodrome::cpu {

void CausalAttention(ThreadPool& pool, const AttentionShape& shape, Tensor qkv, Tensor inv_freq,
                     int64_t sequences, const AttentionDropout& dropout, Tensor o) {
  assert(sequences > 0 && qkv.rows % sequences == 0 && o.rows == qkv.rows);
  assert(qkv.cols == 3 * shape.heads * shape.head_dim && 3 * o.cols == qkv.cols);
  const int64_t tokens = qkv.rows / sequences;
  const float* turns = FirstTurns(pool, shape, inv_freq, tokens);
  pool.Run(sequences * shape.heads, [&](int64_t index, int) {
    const int64_t first = index / shape.heads * tokens;
    AttendHead({.shape = shape,
                .qkv = qkv.Rows(first, tokens),
                .turns = turns,
                .head = index % shape.heads,
                .sequence = index / shape.heads,
                .dropout = dropout},
               o.Rows(first, tokens));
  });
}

void CausalAttentionBackward(ThreadPool& pool, const AttentionShape& shape, Tensor qkv,
                             Tensor inv_freq, int64_t sequences, const AttentionDropout& dropout,
                             Tensor d_o, Gradient dqkv) {
  if (dqkv.tensor.data == nullptr) return;
  assert(sequences > 0 && qkv.rows % sequences == 0 && d_o.rows == qkv.rows);
  assert(qkv.cols == 3 * shape.heads * shape.head_dim && 3 * d_o.cols == qkv.cols);
  assert(dqkv.tensor.rows == qkv.rows && dqkv.tensor.cols == qkv.cols);
  const int64_t tokens = qkv.rows / sequences;
  const float* turns = FirstTurns(pool, shape, inv_freq, tokens);
  pool.Run(sequences * shape.heads, [&](int64_t index, int) {
    const int64_t first = index / shape.heads * tokens;
    AttendHeadBackward({.shape = shape,
                        .qkv = qkv.Rows(first, tokens),
                        .turns = turns,
                        .head = index % shape.heads,
                        .sequence = index / shape.heads,
                        .dropout = dropout},
                       d_o.Rows(first, tokens), {dqkv.tensor.Rows(first, tokens), dqkv.add});
  });
}

}  // namespace hippodrome::cpu
