#include "kernels/cpu/attention/block_pair.h"

namespace hippodrome::cpu {
namespace {

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
