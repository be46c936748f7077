#include "kernels/cpu/attention/bidirectional_attention.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/attention/head_attention.h"
#include "kernels/cpu/attention/softmax_block.h"
#include "kernels/cpu/base/parallel_rows.h"
#include "kernels/cpu/base/scratch.h"
#include "kernels/cpu/base/tensor_memory.h"

namespace hippodrome::cpu {
namespace {

// The next unmasked keys of one head from row `next` on, which moves past them.
KeyRows FindKeys(const AttentionShape& shape, const Tensor& qkv, const int32_t* mask, int64_t head,
                 int64_t& next) {
  const int64_t d = shape.heads * shape.head_dim;
  KeyRows rows;
  rows.count = 0;
  rows.head_dim = shape.head_dim;
  rows.value_offset = d;
  for (; next < qkv.rows && rows.count < kKeyBlock; ++next) {
    if (mask[next] != 0) {
      rows.keys[rows.count++] = F32Row(qkv, next) + d + head * shape.head_dim;
    }
  }
  return rows;
}

// One head of row t of a sequence.
void Attend(const AttentionShape& shape, const Tensor& qkv, const int32_t* mask, int64_t head,
            int64_t t, float* o) {
  float* q = ThreadScratch<float>(ScratchUse::kAttentionTile, shape.head_dim);
  std::copy_n(F32Row(qkv, t) + head * shape.head_dim, shape.head_dim, q);
  Scale(1 / std::sqrt(static_cast<float>(shape.head_dim)), shape.head_dim, q);

  std::fill_n(o, shape.head_dim, 0.0f);
  RunningSoftmax softmax;
  int64_t position = 0;
  KeyRows rows = FindKeys(shape, qkv, mask, head, position);
  while (rows.count > 0) {
    const KeyRows next = FindKeys(shape, qkv, mask, head, position);
    float scores[kKeyBlock];
    ScoreKeys(q, rows, scores);
    float factor;
    ExtendSoftmax(scores, 1, rows.count, &softmax, &factor);
    AddValues(scores, rows, factor, next, o);
    rows = next;
  }
  if (softmax.total > 0) Scale(1 / softmax.total, shape.head_dim, o);
}

}  // namespace

void BidirectionalAttention(ThreadPool& pool, const AttentionShape& shape, Tensor qkv, Tensor mask,
                            Tensor o) {
  const int64_t tokens = mask.cols;
  assert(qkv.rows == mask.rows * tokens && o.rows == qkv.rows);
  assert(qkv.cols == 3 * shape.heads * shape.head_dim && 3 * o.cols == qkv.cols);
  const int64_t work = 2 * shape.head_dim * tokens;
  ParallelRows(pool, qkv.rows * shape.heads, work, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i / shape.heads;
      const int64_t head = i % shape.heads;
      const int64_t b = row / tokens;
      Attend(shape, qkv.Rows(b * tokens, tokens), I32Row(mask, b), head, row % tokens,
             F32Row(o, row) + head * shape.head_dim);
    }
  });
}

void BidirectionalAttentionBackward(ThreadPool& pool, const AttentionShape& shape, Tensor qkv,
                                    Tensor mask, Tensor d_o, Gradient dqkv) {
  if (dqkv.tensor.data == nullptr) return;
  const int64_t tokens = mask.cols;
  assert(qkv.rows == mask.rows * tokens && d_o.rows == qkv.rows);
  assert(qkv.cols == 3 * shape.heads * shape.head_dim && 3 * d_o.cols == qkv.cols);
  assert(dqkv.tensor.rows == qkv.rows && dqkv.tensor.cols == qkv.cols);
  pool.Run(mask.rows * shape.heads, [&](int64_t index, int) {
    const int64_t b = index / shape.heads;
    AttendHeadBackward({.shape = {.heads = shape.heads, .head_dim = shape.head_dim},
                        .qkv = qkv.Rows(b * tokens, tokens),
                        .mask = I32Row(mask, b),
                        .head = index % shape.heads},
                       d_o.Rows(b * tokens, tokens),
                       {dqkv.tensor.Rows(b * tokens, tokens), dqkv.add});
  });
}

}  // namespace hippodrome::cpu
