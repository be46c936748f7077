#include "kernels/cpu/attention/dense_attention.h"

#include <algorithm>
#include <cassert>

#include "kernels/cpu/attention/head_blocks.h"
#include "kernels/cpu/attention/rotary.h"
#include "kernels/cpu/attention/softmax.h"
#include "kernels/cpu/base/memory.h"

namespace hippodrome::cpu {
namespace {

// One head of one sequence: probabilities are computed again, a block of queries at a time.
class AttentionGradient {
 public:
  AttentionGradient(const HeadProblem& problem, const Tensor& d_o, const Gradient& dqkv)
      : head_(problem), d_o_(d_o), dqkv_(dqkv) {
    const int64_t rows = head_.key_blocks() * kScoreBlock;
    const int64_t block = kScoreBlock * head_.stride();
    Parts w(ThreadScratch<float>(
        ScratchUse::kAttentionTile,
        rows * (4 * head_.stride() + 2 * head_.width() + 2 * kScoreBlock) + 3 * block));
    for (float** part : {&keys_, &values_, &dkeys_, &dvalues_})
      *part = w.Take(rows * head_.stride());
    for (float** part : {&key_columns_, &value_columns_}) *part = w.Take(rows * head_.width());
    for (float** part : {&scores_, &dscores_}) *part = w.Take(rows * kScoreBlock);
    for (float** part : {&q_, &rows_, &dq_}) *part = w.Take(block);
  }

  void Run() {
    head_.LoadKeys(1, keys_);
    head_.Transpose(keys_, key_columns_);
    head_.LoadKeys(2, values_);
    head_.Transpose(values_, value_columns_);
    for (int64_t block = 0; block < head_.query_blocks(); ++block) {
      LoadBlock(block);
      Weigh(block);
      Sum(block);
      head_.StoreQueryGradients(block, dq_, dqkv_);
    }
    head_.StoreKeyGradients(1, dkeys_, dqkv_);
    head_.StoreKeyGradients(2, dvalues_, dqkv_);
  }

 private:
  void LoadBlock(int64_t block) {
    head_.LoadQueries(block, q_);
    head_.LoadRows(d_o_, block, rows_);
  }

  // scores_ = M P, dscores_ = dS = P (dP - rowsum(P dP)) with dP = M dO V^T, where M is 1, or what
  // dropout multiplies a weight by.
  void Weigh(int64_t block) {
    for (int64_t j = 0; j < head_.BlocksSeen(block); ++j) {
      const BlockPair pair = {head_, block, j};
      const int64_t columns = j * kScoreBlock * head_.width();
      pair.Scores(q_, key_columns_ + columns, scores_ + j * kScores);
      pair.Scores(rows_, value_columns_ + columns, dscores_ + j * kScores);
    }
    for (int64_t i = 0; i < head_.QueriesOf(block); ++i) {
      const int64_t token = block * kScoreBlock + i;
      const int64_t visible = head_.VisibleTo(token);
      float* row = scores_ + i * kScoreBlock;
      float* drow = dscores_ + i * kScoreBlock;
      const float total = ExponentialRow(row, visible);
      head_.Drop(token, drow);
      SoftmaxBackwardRow(total, visible, row, drow);
      head_.Drop(token, row);
    }
  }

  // dV += (M P)^T dO, dK += dS^T Q / sqrt(head_dim), dQ = dS K.
  void Sum(int64_t block) {
    for (int64_t j = 0; j < head_.BlocksSeen(block); ++j) {
      const BlockPair pair = {head_, block, j};
      const int64_t first = j * kScoreBlock * head_.stride();
      pair.SumQueries(scores_ + j * kScores, rows_, dvalues_ + first);
      pair.SumQueries(dscores_ + j * kScores, q_, dkeys_ + first);
      pair.SumKeys(dscores_ + j * kScores, keys_ + first, dq_);
    }
  }

  HeadBlocks head_;
  Tensor d_o_;
  Gradient dqkv_;
  float *keys_, *values_, *dkeys_, *dvalues_, *key_columns_, *value_columns_;
  float *scores_, *dscores_, *q_, *rows_, *dq_;
};

// dqkv of a head of a sequence without keys.
void ClearHead(const HeadBlocks& head, const Tensor& dqkv) {
  const AttentionShape& shape = head.problem().shape;
  for (int64_t token = 0; token < dqkv.rows; ++token) {
    for (int64_t part = 0; part < 3; ++part) {
      const int64_t column = (part * shape.heads + head.problem().head) * shape.head_dim;
      std::fill_n(F32Row(dqkv, token) + column, shape.head_dim, 0.0f);
    }
  }
}

// Writes the three columns of the head of dqkv, [T, 3 d].  d_o: [T, d].
void HeadBackward(const HeadProblem& problem, const Tensor& d_o, const Gradient& dqkv) {
  const HeadBlocks head(problem);
  if (head.keys() > 0) return AttentionGradient(problem, d_o, dqkv).Run();
  if (!dqkv.add) ClearHead(head, dqkv.tensor);
}

}  // namespace

void BidirectionalAttentionBackward(ThreadPool& pool, const AttentionShape& shape, Tensor qkv,
                                    Tensor mask, Tensor d_o, Gradient dqkv) {
  if (dqkv.tensor.data == nullptr) return;
  const int64_t tokens = mask.cols;
  assert(qkv.rows == mask.rows * tokens && d_o.rows == qkv.rows);
  assert(qkv.cols == 3 * shape.heads * shape.head_dim && 3 * d_o.cols == qkv.cols);
  assert(dqkv.tensor.rows == qkv.rows && dqkv.tensor.cols == qkv.cols);
  pool.Run(mask.rows * shape.heads, [&](int64_t index, int) {
    const int64_t b = index / shape.heads;
    HeadBackward({.shape = {.heads = shape.heads, .head_dim = shape.head_dim},
                  .qkv = qkv.Rows(b * tokens, tokens),
                  .mask = I32Row(mask, b),
                  .head = index % shape.heads},
                 d_o.Rows(b * tokens, tokens), {dqkv.tensor.Rows(b * tokens, tokens), dqkv.add});
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
  const float* turns = AllTurns(pool, shape, inv_freq, tokens, [](int64_t t) { return t; });
  pool.Run(sequences * shape.heads, [&](int64_t index, int) {
    const int64_t first = index / shape.heads * tokens;
    HeadBackward({.shape = shape,
                  .qkv = qkv.Rows(first, tokens),
                  .turns = turns,
                  .head = index % shape.heads,
                  .sequence = index / shape.heads,
                  .dropout = dropout},
                 d_o.Rows(first, tokens), {dqkv.tensor.Rows(first, tokens), dqkv.add});
  });
}

}  // namespace hippodrome::cpu
