// The attention of one head over one sequence in blocks of kScoreBlock queries or keys: its
// operands, copied to blocks that products take, and these products.
#ifndef HIPPODROME_KERNELS_CPU_ATTENTION_HEAD_BLOCKS_H_
#define HIPPODROME_KERNELS_CPU_ATTENTION_HEAD_BLOCKS_H_

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/attention/softmax.h"
#include "kernels/training_backend.h"

namespace hippodrome::cpu {

// One head of one sequence of T tokens.
struct HeadProblem {
  AttentionShape shape;
  Tensor qkv;                     // [T, 3 d]
  const float* turns = nullptr;   // [T, rotary_dim], unread without rotary
  const int32_t* mask = nullptr;  // [T], 0 for tokens without key and value; null: the sequence is
                                  // causal, row t sees keys s <= t
  int64_t head = 0;
  int64_t sequence = 0;      // of which the tokens are, among those of a batch
  AttentionDropout dropout;  // of a causal sequence
};

// Where a head's keys are, the sizes of its blocks, and the ways into them and back.
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

// Scores of a pair of blocks: [kScoreBlock queries][kScoreBlock keys].
inline constexpr int64_t kScores = kScoreBlock * kScoreBlock;

// The products of a block of queries and a block of keys of one head. On the diagonal of a causal
// head most of what is not seen is left out: scores behind what a query sees, rounded up to
// kScoreColumns, are neither written nor read.
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

#endif  // HIPPODROME_KERNELS_CPU_ATTENTION_HEAD_BLOCKS_H_
