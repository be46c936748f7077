// The products of a block of queries and a block of keys of one head.
#ifndef HIPPODROME_KERNELS_CPU_ATTENTION_BLOCK_PAIR_H_
#define HIPPODROME_KERNELS_CPU_ATTENTION_BLOCK_PAIR_H_

#include "kernels/cpu/attention/head_blocks.h"
#include "kernels/cpu/base/scratch.h"

namespace hippodrome::cpu {

// Scores of a pair of blocks: [kScoreBlock queries][kScoreBlock keys].
inline constexpr int64_t kScores = kScoreBlock * kScoreBlock;

// The parts of one allocation, in the order in which they are taken.
class Workspace {
 public:
  explicit Workspace(int64_t floats)
      : next_(ThreadScratch<float>(ScratchUse::kAttentionTile, floats)) {}
  float* Take(int64_t floats) {
    float* part = next_;
    next_ += floats;
    return part;
  }

 private:
  float* next_;
};

// On the diagonal of a causal head most of what is not seen is left out: scores behind what a query
// sees, rounded up to kScoreColumns, are neither written nor read.
struct BlockPair {
  const HeadBlocks& head;
  int64_t queries;  // numbers of blocks
  int64_t keys;

  // scores = rows columns: rows [kScoreBlock][stride], columns [head_dim][kScoreBlock].
  void Scores(const float* rows, const float* columns, float* scores) const;
  // sums += weights rows over keys, replaced by the first block of keys: rows and sums
  // [kScoreBlock][stride].
  void SumKeys(const float* weights, const float* rows, float* sums) const;
  // sums += weights^T rows over queries, replaced by the first block of queries that sees the keys.
  void SumQueries(const float* weights, const float* rows, float* sums) const;

 private:
  bool diagonal() const { return head.causal() && queries == keys; }
};

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_ATTENTION_BLOCK_PAIR_H_
