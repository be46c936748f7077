#include "kernels/cpu/attention/dense_attention.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "kernels/cpu/attention/head_blocks.h"
#include "kernels/cpu/attention/rotary.h"
#include "kernels/cpu/attention/softmax.h"
#include "kernels/cpu/base/memory.h"
#include "kernels/cpu/base/parallel_loops.h"

namespace hippodrome::cpu {
namespace {

// The next unmasked keys of one head from row `next` on, which moves past them.
KeyRows<float> FindKeys(const AttentionShape& shape, const Tensor& qkv, const int32_t* mask,
                        int64_t head, int64_t& next) {
  const int64_t d = shape.heads * shape.head_dim;
  KeyRows<float> rows;
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

// One head of row t of a sequence, with its softmax running over blocks of keys.
void AttendRow(const AttentionShape& shape, const Tensor& qkv, const int32_t* mask, int64_t head,
               int64_t t, float* o) {
  float* q = ThreadScratch<float>(ScratchUse::kAttentionTile, shape.head_dim);
  std::copy_n(F32Row(qkv, t) + head * shape.head_dim, shape.head_dim, q);
  Scale(1 / std::sqrt(static_cast<float>(shape.head_dim)), shape.head_dim, q);

  std::fill_n(o, shape.head_dim, 0.0f);
  RunningSoftmax softmax;
  int64_t position = 0;
  KeyRows<float> rows = FindKeys(shape, qkv, mask, head, position);
  while (rows.count > 0) {
    const KeyRows<float> next = FindKeys(shape, qkv, mask, head, position);
    float scores[kKeyBlock];
    ScoreKeys(q, rows, scores);
    float factor;
    ExtendSoftmax(scores, 1, rows.count, &softmax, &factor);
    AddValues(scores, rows, factor, next, o);
    rows = next;
  }
  if (softmax.total > 0) Scale(1 / softmax.total, shape.head_dim, o);
}

// One head of a causal sequence.
class CausalHead {
 public:
  explicit CausalHead(const HeadProblem& problem) : head_(problem) {
    const int64_t rows = head_.key_blocks() * kScoreBlock;
    const int64_t block = kScoreBlock * head_.stride();
    Parts w(ThreadScratch<float>(
        ScratchUse::kAttentionTile,
        rows * (2 * head_.stride() + head_.width() + kScoreBlock) + 2 * block));
    values_ = w.Take(rows * head_.stride());
    keys_ = w.Take(rows * head_.stride());
    key_columns_ = w.Take(rows * head_.width());
    scores_ = w.Take(rows * kScoreBlock);
    q_ = w.Take(block);
    sums_ = w.Take(block);
  }

  void Run(const Tensor& o) {
    head_.LoadKeys(1, keys_);
    head_.Transpose(keys_, key_columns_);
    head_.LoadKeys(2, values_);
    for (int64_t block = 0; block < head_.query_blocks(); ++block) Attend(block, o);
  }

 private:
  void Attend(int64_t block, const Tensor& o) {
    const int64_t width = head_.width();
    head_.LoadQueries(block, q_);
    for (int64_t j = 0; j < head_.BlocksSeen(block); ++j) {
      BlockPair{head_, block, j}.Scores(q_, key_columns_ + j * kScoreBlock * width,
                                        scores_ + j * kScores);
    }
    float totals[kScoreBlock];
    for (int64_t i = 0; i < head_.QueriesOf(block); ++i) {
      const int64_t token = block * kScoreBlock + i;
      float* row = scores_ + i * kScoreBlock;
      totals[i] = ExponentialRow(row, head_.VisibleTo(token));
      head_.Drop(token, row);
    }
    for (int64_t j = 0; j < head_.BlocksSeen(block); ++j) {
      BlockPair{head_, block, j}.SumKeys(scores_ + j * kScores,
                                         values_ + j * kScoreBlock * head_.stride(), sums_);
    }
    for (int64_t i = 0; i < head_.QueriesOf(block); ++i) {
      float* out = F32Row(o, block * kScoreBlock + i) + head_.problem().head * width;
      std::copy_n(sums_ + i * head_.stride(), width, out);
      Scale(1 / totals[i], width, out);
    }
  }

  HeadBlocks head_;
  float *values_, *keys_, *key_columns_, *scores_, *q_, *sums_;
};

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
      AttendRow(shape, qkv.Rows(b * tokens, tokens), I32Row(mask, b), head, row % tokens,
                F32Row(o, row) + head * shape.head_dim);
    }
  });
}

void CausalAttention(ThreadPool& pool, const AttentionShape& shape, Tensor qkv, Tensor inv_freq,
                     int64_t sequences, const AttentionDropout& dropout, Tensor o) {
  assert(sequences > 0 && qkv.rows % sequences == 0 && o.rows == qkv.rows);
  assert(qkv.cols == 3 * shape.heads * shape.head_dim && 3 * o.cols == qkv.cols);
  const int64_t tokens = qkv.rows / sequences;
  const float* turns = AllTurns(pool, shape, inv_freq, tokens, [](int64_t t) { return t; });
  pool.Run(sequences * shape.heads, [&](int64_t index, int) {
    const int64_t first = index / shape.heads * tokens;
    CausalHead({.shape = shape,
                .qkv = qkv.Rows(first, tokens),
                .turns = turns,
                .head = index % shape.heads,
                .sequence = index / shape.heads,
                .dropout = dropout})
        .Run(o.Rows(first, tokens));
  });
}

}  // namespace hippodrome::cpu
