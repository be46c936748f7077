// The operands of one head's attention, copied to blocks that products take.
#ifndef HIPPODROME_KERNELS_CPU_ATTENTION_HEAD_BLOCKS_H_
#define HIPPODROME_KERNELS_CPU_ATTENTION_HEAD_BLOCKS_H_

#include <algorithm>

#include "kernels/cpu/attention/head_attention.h"
#include "kernels/cpu/attention/softmax_rows.h"
#include "kernels/cpu/gemm/small_gemm.h"

namespace hippodrome::cpu {

// Where a head's keys are, and the sizes of its blocks: kScoreBlock queries or keys each.
class HeadBlocks {
 public:
  explicit HeadBlocks(const HeadProblem& problem);

  const HeadProblem& problem() const { return problem_; }
  bool causal() const { return problem_.mask == nullptr; }
  int64_t width() const { return problem_.shape.head_dim; }
  // `width` rounded up to columns of a product.
  int64_t stride() const { return stride_; }
  int64_t tokens() const { return problem_.qkv.rows; }
  int64_t keys() const { return keys_; }
  int64_t query_blocks() const { return (tokens() + kScoreBlock - 1) / kScoreBlock; }
  int64_t key_blocks() const { return (keys_ + kScoreBlock - 1) / kScoreBlock; }
  int64_t QueriesOf(int64_t block) const {
    return std::min(kScoreBlock, tokens() - block * kScoreBlock);
  }
  int64_t KeysOf(int64_t block) const { return std::min(kScoreBlock, keys_ - block * kScoreBlock); }
  // Blocks of keys that queries of a block see, and the first block of queries that sees keys.
  int64_t BlocksSeen(int64_t queries) const { return causal() ? queries + 1 : key_blocks(); }
  bool FirstToSee(int64_t queries, int64_t keys) const { return queries == (causal() ? keys : 0); }
  int64_t VisibleTo(int64_t token) const { return causal() ? token + 1 : keys_; }

  // Part 0, 1, 2 (q, k, v) of a token.
  const float* Part(int64_t token, int64_t part) const;

  // `row`: of the token, as ExponentialRow() and SoftmaxBackwardRow() have it. Drops from it what
  // is dropped from the weights.
  void Drop(int64_t token, float* row) const;

  // Query rows of a block, [kScoreBlock][stride], rotated and scaled by 1 / sqrt(head_dim).
  void LoadQueries(int64_t block, float* q) const;
  // All keys (part 1, rotated) or values (part 2), [key_blocks * kScoreBlock][stride], zero beyond.
  void LoadKeys(int64_t part, float* rows) const;
  // Rows of the columns of the head of a matrix [T, d], [kScoreBlock][stride], zero beyond.
  void LoadRows(const Tensor& matrix, int64_t block, float* rows) const;
  // Those rows as columns, [key_blocks][head_dim][kScoreBlock].
  void Transpose(const float* rows, float* columns) const;

  // Adds to or replaces dq of a block (rotated back), the other way round.
  void StoreQueryGradients(int64_t block, float* dq, const Gradient& dqkv) const;
  // The same of all keys or values; zero for masked tokens.
  void StoreKeyGradients(int64_t part, float* rows, const Gradient& dqkv) const;

 private:
  const float* Turns(int64_t token) const {
    return problem_.turns + token * problem_.shape.rotary_dim;
  }
  // Calls body(token, key) for each token with a key, in order.
  template <typename Body>
  void ForKeys(const Body& body) const;

  HeadProblem problem_;
  int64_t stride_;
  int64_t keys_;
};

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_ATTENTION_HEAD_BLOCKS_H_
