#include "kernels/cpu/attention/head_attention.h"

#include <cassert>

#include "kernels/cpu/attention/block_pair.h"
#include "kernels/cpu/attention/rotary.h"
#include "kernels/cpu/attention/softmax_block.h"
#include "kernels/cpu/base/parallel_rows.h"
#include "kernels/cpu/base/tensor_memory.h"

namespace hippodrome::cpu {
namespace {

class Forward {
 public:
  explicit Forward(const HeadProblem& problem) : head_(problem) {
    const int64_t rows = head_.key_blocks() * kScoreBlock;
    const int64_t block = kScoreBlock * head_.stride();
    Workspace w(rows * (2 * head_.stride() + head_.width() + kScoreBlock) + 2 * block);
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

void AttendHead(const HeadProblem& problem, Tensor o) {
  assert(problem.mask == nullptr);
  Forward(problem).Run(o);
}

const float* FirstTurns(ThreadPool& pool, const AttentionShape& shape, Tensor inv_freq,
                        int64_t tokens) {
  const int64_t width = shape.rotary_dim;
  float* turns = ThreadScratch<float>(ScratchUse::kAttentionRotation, tokens * width);
  if (width == 0) return turns;
  ParallelRows(pool, tokens, 32 * width, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      RotaryTurns(t, F32Row(inv_freq, 0), width / 2, turns + t * width);
    }
  });
  return turns;
}

}  // namespace hippodrome::cpu
