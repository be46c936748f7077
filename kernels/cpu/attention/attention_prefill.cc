// AttentionSequence: blocks of queries against blocks of keys, as products of small matrices.
#include <algorithm>
#include <cmath>

#include "kernels/cpu/attention/attention.h"
#include "kernels/cpu/attention/rotary.h"
#include "kernels/cpu/attention/softmax.h"
#include "kernels/cpu/base/memory.h"
#include "kernels/cpu/base/parallel_loops.h"
#include "kernels/cpu/gemm/small_gemm.h"

namespace hippodrome::cpu {
namespace {

// Queries that are multiplied together, and those that share a gathered block of keys.
constexpr int64_t kQueryTile = kSmallGemmRows;
constexpr int64_t kQueryBlock = 42 * kQueryTile;

struct Sequence {
  const AttentionShape& shape;
  const Tensor& qkv;
  const float* turns;  // [T, rotary_dim]
  const PagedRows& pages;
  const int32_t* page_table;
  int64_t start;
  const Tensor& o;
};

// The working memory of one block of queries of one head.
struct ChunkWorkspace {
  explicit ChunkWorkspace(int64_t head_dim)
      : stride((head_dim + kSmallGemmColumns - 1) / kSmallGemmColumns * kSmallGemmColumns) {
    Parts parts(
        ThreadScratch<float>(ScratchUse::kAttentionTile,
                             (2 * kQueryBlock + 2 * kKeyBlock) * stride + kQueryTile * kKeyBlock));
    q = parts.Take(kQueryBlock * stride);
    keys = parts.Take(stride * kKeyBlock);
    values = parts.Take(kKeyBlock * stride);
    sums = parts.Take(kQueryBlock * stride);
    scores = parts.Take(kQueryTile * kKeyBlock);
  }

  int64_t stride;  // head_dim rounded up to columns of a product
  float* q;        // [queries][head_dim], rotated and scaled
  float* keys;     // [head_dim][kKeyBlock]
  float* values;   // [kKeyBlock][stride]
  float* sums;     // [queries][stride]
  float* scores;   // [kQueryTile][kKeyBlock]
  RunningSoftmax softmax[kQueryBlock];
};

void StoreKeysAndValues(const Sequence& s, int64_t row) {
  const AttentionShape& shape = s.shape;
  const int64_t d = shape.heads * shape.head_dim;
  const float* k = F32Row(s.qkv, row) + d;
  for (int64_t head = 0; head < shape.heads; ++head, k += shape.head_dim) {
    float* key = s.pages.Key(s.page_table, s.start + row, head);
    Rotate(k, s.turns + row * shape.rotary_dim, shape.rotary_dim / 2, shape.head_dim, key);
    std::copy_n(k + d, shape.head_dim, key + s.pages.value_offset());
  }
}

void LoadQueries(const Sequence& s, int64_t head, int64_t first, int64_t count, float* q) {
  const int64_t head_dim = s.shape.head_dim;
  for (int64_t i = 0; i < count; ++i) {
    Rotate(F32Row(s.qkv, first + i) + head * head_dim, s.turns + (first + i) * s.shape.rotary_dim,
           s.shape.rotary_dim / 2, head_dim, q + i * head_dim);
  }
  Scale(1 / std::sqrt(static_cast<float>(head_dim)), count * head_dim, q);
}

// Gathers `count` keys as columns and their values as rows, zero beyond.
void LoadKeys(const Sequence& s, int64_t head, int64_t begin, int64_t count, ChunkWorkspace& w) {
  const int64_t head_dim = s.shape.head_dim;
  const float* keys[kKeyBlock];
  s.pages.FindKeys(s.page_table, head, begin, count, keys);
  for (int64_t j = 0; j < head_dim; ++j) {
    float* column = w.keys + j * kKeyBlock;
    for (int64_t i = 0; i < count; ++i) column[i] = keys[i][j];
    std::fill(column + count, column + kKeyBlock, 0.0f);
  }
  std::fill_n(w.values, kKeyBlock * w.stride, 0.0f);
  for (int64_t i = 0; i < count; ++i) {
    std::copy_n(keys[i] + s.pages.value_offset(), head_dim, w.values + i * w.stride);
  }
}

// Queries [first, first + rows) of the block, which start at `position`, against the gathered keys,
// which start at `begin`.
void AttendTile(ChunkWorkspace& w, int64_t head_dim, int64_t first, int64_t rows, int64_t position,
                int64_t begin) {
  SmallGemm({.a = {w.q + first * head_dim, head_dim, 1},
             .b = w.keys,
             .b_row = kKeyBlock,
             .c = w.scores,
             .c_row = kKeyBlock,
             .rows = rows,
             .cols = kKeyBlock,
             .depth = head_dim,
             .accumulate = false});
  float factors[kQueryTile];
  ExtendSoftmax(w.scores, rows, position + 1 - begin, w.softmax + first, factors);
  float* sums = w.sums + first * w.stride;
  for (int64_t r = 0; r < rows && begin > 0; ++r) {
    if (factors[r] != 1) Scale(factors[r], w.stride, sums + r * w.stride);
  }
  SmallGemm({.a = {w.scores, kKeyBlock, 1},
             .b = w.values,
             .b_row = w.stride,
             .c = sums,
             .c_row = w.stride,
             .rows = rows,
             .cols = w.stride,
             .depth = kKeyBlock,
             .accumulate = begin > 0});
}

void StoreOutput(const Sequence& s, const ChunkWorkspace& w, int64_t head, int64_t first,
                 int64_t count) {
  const int64_t head_dim = s.shape.head_dim;
  for (int64_t i = 0; i < count; ++i) {
    float* out = F32Row(s.o, first + i) + head * head_dim;
    std::copy_n(w.sums + i * w.stride, head_dim, out);
    Scale(1 / w.softmax[i].total, head_dim, out);
  }
}

// Rows [first, first + count) of one head.
void AttendBlock(const Sequence& s, int64_t head, int64_t first, int64_t count) {
  const int64_t head_dim = s.shape.head_dim;
  ChunkWorkspace w(head_dim);
  LoadQueries(s, head, first, count, w.q);
  const int64_t end = s.start + first + count;  // of the visible positions
  const int64_t tiles = (count + kQueryTile - 1) / kQueryTile;
  for (int64_t begin = 0; begin < end; begin += kKeyBlock) {
    LoadKeys(s, head, begin, std::min(kKeyBlock, end - begin), w);
    for (int64_t t = 0; t < tiles; ++t) {
      const int64_t row = t * kQueryTile;
      const int64_t rows = std::min(kQueryTile, count - row);
      const int64_t position = s.start + first + row;
      if (position + rows <= begin) continue;  // the whole tile lies before these keys
      AttendTile(w, head_dim, row, rows, position, begin);
    }
  }
  StoreOutput(s, w, head, first, count);
}

}  // namespace

void AttentionSequence(ThreadPool& pool, const AttentionShape& shape, Tensor qkv, Tensor inv_freq,
                       PagedRows& pages, Tensor page_table, int64_t start, Tensor o) {
  const int64_t rows = qkv.rows;
  const int64_t width = shape.rotary_dim;
  assert(start >= 0 && start + rows <= page_table.cols * pages.page_tokens());
  float* turns = ThreadScratch<float>(ScratchUse::kAttentionRotation, rows * width);
  const Sequence s = {shape, qkv, turns, pages, I32Row(page_table, 0), start, o};

  ParallelRows(pool, rows, 2 * shape.heads * shape.head_dim + 32 * width,
               [&](int64_t begin, int64_t end) {
                 for (int64_t row = begin; row < end; ++row) {
                   if (width > 0) {
                     RotaryTurns(start + row, F32Row(inv_freq, 0), width / 2, turns + row * width);
                   }
                   StoreKeysAndValues(s, row);
                 }
               });

  const int64_t blocks = (rows + kQueryBlock - 1) / kQueryBlock;
  ParallelRows(pool, blocks * shape.heads, rows * shape.head_dim * (start + rows) / blocks,
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   // The last blocks see the most keys: they go first.
                   const int64_t first = (blocks - 1 - i / shape.heads) * kQueryBlock;
                   AttendBlock(s, i % shape.heads, first, std::min(kQueryBlock, rows - first));
                 }
               });
}

}  // namespace hippodrome::cpu
