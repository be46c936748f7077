#include "kernels/cpu/attention/head_blocks.h"

#include <cmath>

#include "kernels/cpu/attention/rotary.h"
#include "kernels/cpu/base/memory.h"
#include "kernels/cpu/gemm/small_gemm.h"
#include "kernels/cpu/rows/dropout.h"

namespace hippodrome::cpu {
namespace {

void StoreRow(const float* row, int64_t n, bool add, float* out) {
  if (!add) {
    std::copy_n(row, n, out);
    return;
  }
  for (int64_t i = 0; i < n; ++i) out[i] += row[i];
}

// A block of queries against one of keys: calls body(begin, count, end) for groups of queries
// [begin, begin + count) that see keys [0, end) of the block. On the diagonal these are few rows,
// to leave out most of what is not seen.
template <typename Body>
void ForGroups(bool diagonal, int64_t queries, int64_t keys, const Body& body) {
  if (!diagonal) return body(0, queries, keys);
  for (int64_t begin = 0; begin < queries; begin += kScoreColumns) {
    const int64_t end = std::min(queries, begin + kScoreColumns);
    body(begin, end - begin, end);
  }
}

int64_t RoundUp(int64_t count) {
  return (count + kSmallGemmColumns - 1) / kSmallGemmColumns * kSmallGemmColumns;
}

}  // namespace

HeadBlocks::HeadBlocks(const HeadProblem& problem)
    : problem_(problem),
      stride_((problem.shape.head_dim + kSmallGemmColumns - 1) / kSmallGemmColumns *
              kSmallGemmColumns),
      keys_(problem.qkv.rows) {
  if (!causal()) keys_ -= std::count(problem.mask, problem.mask + keys_, 0);
}

const float* HeadBlocks::Part(int64_t token, int64_t part) const {
  const AttentionShape& shape = problem_.shape;
  return F32Row(problem_.qkv, token) + (part * shape.heads + problem_.head) * shape.head_dim;
}

void HeadBlocks::Drop(int64_t token, float* row) const {
  const auto& [p, seed] = problem_.dropout;
  if (p == 0) return;
  const int64_t head = problem_.sequence * problem_.shape.heads + problem_.head;
  const DropoutRow bits = DropoutRowOf(seed, head * tokens() + token);
  const auto scale = static_cast<float>(1 / (1 - p));
  for (int64_t first = 0; first < VisibleTo(token); first += kScoreBlock) {
    DropColumns(bits, DropoutThreshold(p), scale, first,
                std::min(kScoreBlock, VisibleTo(token) - first), row + first * kScoreBlock);
  }
}

template <typename Body>
void HeadBlocks::ForKeys(const Body& body) const {
  int64_t key = 0;
  for (int64_t token = 0; token < tokens(); ++token) {
    if (causal() || problem_.mask[token] != 0) body(token, key++);
  }
}

void HeadBlocks::LoadQueries(int64_t block, float* q) const {
  const int64_t count = QueriesOf(block);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t token = block * kScoreBlock + i;
    float* row = q + i * stride_;
    Rotate(Part(token, 0), Turns(token), problem_.shape.rotary_dim / 2, width(), row);
    std::fill(row + width(), row + stride_, 0.0f);
  }
  Scale(1 / std::sqrt(static_cast<float>(width())), count * stride_, q);
}

void HeadBlocks::LoadKeys(int64_t part, float* rows) const {
  const int64_t half = part == 1 ? problem_.shape.rotary_dim / 2 : 0;
  ForKeys([&](int64_t token, int64_t key) {
    float* row = rows + key * stride_;
    Rotate(Part(token, part), Turns(token), half, width(), row);
    std::fill(row + width(), row + stride_, 0.0f);
  });
  std::fill(rows + keys_ * stride_, rows + key_blocks() * kScoreBlock * stride_, 0.0f);
}

void HeadBlocks::LoadRows(const Tensor& matrix, int64_t block, float* rows) const {
  for (int64_t i = 0; i < QueriesOf(block); ++i) {
    float* row = rows + i * stride_;
    std::copy_n(F32Row(matrix, block * kScoreBlock + i) + problem_.head * width(), width(), row);
    std::fill(row + width(), row + stride_, 0.0f);
  }
}

void HeadBlocks::Transpose(const float* rows, float* columns) const {
  for (int64_t block = 0; block < key_blocks(); ++block) {
    for (int64_t e = 0; e < width(); ++e) {
      for (int64_t i = 0; i < kScoreBlock; ++i) columns[i] = rows[i * stride_ + e];
      columns += kScoreBlock;
    }
    rows += kScoreBlock * stride_;
  }
}

void HeadBlocks::StoreQueryGradients(int64_t block, float* dq, const Gradient& dqkv) const {
  const int64_t count = QueriesOf(block);
  Scale(1 / std::sqrt(static_cast<float>(width())), count * stride_, dq);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t token = block * kScoreBlock + i;
    float* row = dq + i * stride_;
    RotateBack(row, Turns(token), problem_.shape.rotary_dim / 2, width(), row);
    StoreRow(row, width(), dqkv.add, F32Row(dqkv.tensor, token) + problem_.head * width());
  }
}

void HeadBlocks::StoreKeyGradients(int64_t part, float* rows, const Gradient& dqkv) const {
  const int64_t half = part == 1 ? problem_.shape.rotary_dim / 2 : 0;
  const int64_t column = (part * problem_.shape.heads + problem_.head) * width();
  if (!causal() && !dqkv.add) {
    for (int64_t token = 0; token < tokens(); ++token) {
      std::fill_n(F32Row(dqkv.tensor, token) + column, width(), 0.0f);
    }
  }
  ForKeys([&](int64_t token, int64_t key) {
    float* row = rows + key * stride_;
    RotateBack(row, Turns(token), half, width(), row);
    StoreRow(row, width(), dqkv.add, F32Row(dqkv.tensor, token) + column);
  });
}

void BlockPair::Scores(const float* rows, const float* columns, float* scores) const {
  ForGroups(diagonal(), head.QueriesOf(queries), head.KeysOf(keys),
            [&](int64_t begin, int64_t count, int64_t end) {
              SmallGemm({.a = {rows + begin * head.stride(), head.stride(), 1},
                         .b = columns,
                         .b_row = kScoreBlock,
                         .c = scores + begin * kScoreBlock,
                         .c_row = kScoreBlock,
                         .rows = count,
                         .cols = RoundUp(end),
                         .depth = head.width(),
                         .accumulate = false});
            });
}

void BlockPair::SumKeys(const float* weights, const float* rows, float* sums) const {
  ForGroups(diagonal(), head.QueriesOf(queries), head.KeysOf(keys),
            [&](int64_t begin, int64_t count, int64_t end) {
              SmallGemm({.a = {weights + begin * kScoreBlock, kScoreBlock, 1},
                         .b = rows,
                         .b_row = head.stride(),
                         .c = sums + begin * head.stride(),
                         .c_row = head.stride(),
                         .rows = count,
                         .cols = head.stride(),
                         .depth = end,
                         .accumulate = keys > 0});
            });
}

void BlockPair::SumQueries(const float* weights, const float* rows, float* sums) const {
  const int64_t count = head.QueriesOf(queries);
  // On the diagonal a group of keys is seen from its own first row on.
  ForGroups(diagonal(), head.KeysOf(keys), count, [&](int64_t begin, int64_t key_count, int64_t) {
    const int64_t first = diagonal() ? begin : 0;
    SmallGemm({.a = {weights + first * kScoreBlock + begin, 1, kScoreBlock},
               .b = rows + first * head.stride(),
               .b_row = head.stride(),
               .c = sums + begin * head.stride(),
               .c_row = head.stride(),
               .rows = key_count,
               .cols = head.stride(),
               .depth = count - first,
               .accumulate = !head.FirstToSee(queries, keys)});
  });
}

}  // namespace hippodrome::cpu
