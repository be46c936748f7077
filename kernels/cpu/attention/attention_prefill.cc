// AttentionSequence: blocks of queries against blocks of keys, as products of small matrices.
#include <algorithm>
#include <cassert>
#include <cmath>
#include <vector>

#include "kernels/cpu/attention/attention.h"
#include "kernels/cpu/attention/key_columns.h"
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

static_assert(kWindowBlock % kKeyBlock == 0);

struct Sequence {
  const AttentionShape& shape;
  Tensor qkv;
  float* turns;  // [T, rotary_dim]
  const PagedRows& pages;
  const int32_t* page_table;
  int64_t start;
  Tensor o;

  // Of the first page of the table.
  int64_t table_start() const { return shape.FirstSeen(start); }
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
  float* key = ThreadScratch<float>(ScratchUse::kAttentionTile, shape.head_dim);
  for (int64_t head = 0; head < shape.heads; ++head, k += shape.head_dim) {
    Rotate(k, s.turns + row * shape.rotary_dim, shape.rotary_dim / 2, shape.head_dim, key);
    s.pages.Store(s.page_table, s.start + row - s.table_start(), head, key, k + d);
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
template <typename T>
void LoadKeys(const Sequence& s, int64_t head, int64_t begin, int64_t count, ChunkWorkspace& w) {
  const int64_t head_dim = s.shape.head_dim;
  const T* keys[kKeyBlock] = {};
  s.pages.FindKeys(s.page_table, head, begin - s.table_start(), count, keys);
  KeysToColumns(keys, count, head_dim, kKeyBlock, w.keys);
  std::fill_n(w.values, kKeyBlock * w.stride, 0.0f);
  for (int64_t i = 0; i < count; ++i) {
    const T* value = keys[i] + s.pages.value_offset();
    std::transform(value, value + head_dim, w.values + i * w.stride, [](T x) { return Widen(x); });
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
  for (int64_t r = 0; r < rows; ++r) {
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
             .accumulate = true});
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
  std::fill_n(w.sums, count * w.stride, 0.0f);
  const int64_t start = s.start + first;
  const int64_t end = start + count;  // of the visible positions
  const int64_t tiles = (count + kQueryTile - 1) / kQueryTile;
  const auto load_keys = s.pages.dtype() == DType::kF32 ? LoadKeys<float> : LoadKeys<BF16>;
  for (int64_t begin = s.shape.FirstSeen(start); begin < end; begin += kKeyBlock) {
    load_keys(s, head, begin, std::min(kKeyBlock, end - begin), w);
    for (int64_t t = 0; t < tiles; ++t) {
      const int64_t row = t * kQueryTile;
      const int64_t position = start + row;
      int64_t rows = std::min(kQueryTile, count - row);
      if (position + rows <= begin) continue;  // the whole tile lies before these keys
      // The last ones of a tile may have these keys before their window.
      while (rows > 0 && s.shape.FirstSeen(position + rows - 1) > begin) --rows;
      if (rows > 0) AttendTile(w, head_dim, row, rows, position, begin);
    }
  }
  StoreOutput(s, w, head, first, count);
}

// A block of queries of a sequence.
struct QueryBlock {
  const Sequence* sequence;
  int64_t first;
  int64_t count;

  int64_t visible() const {
    const int64_t start = sequence->start + first;
    return start + count - sequence->shape.FirstSeen(start);
  }
};

// The parts that are not inert. `turns`: [rows, rotary_dim].
std::vector<Sequence> Sequences(const AttentionShape& shape, Tensor qkv, const PagedRows& pages,
                                Tensor page_tables, const SequenceParts& parts, float* turns,
                                Tensor o) {
  std::vector<Sequence> sequences;
  for (size_t i = 0; i < parts.parts.size(); ++i) {
    const SequencePart& part = parts.parts[i];
    if (part.slot < 0) continue;
    assert(part.start >= 0 && part.start + part.tokens - shape.FirstSeen(part.start) <=
                                  page_tables.cols * pages.page_tokens());
    sequences.push_back({.shape = shape,
                         .qkv = qkv.Rows(part.first_row, part.tokens),
                         .turns = turns + part.first_row * shape.rotary_dim,
                         .pages = pages,
                         .page_table = I32Row(page_tables, static_cast<int64_t>(i)),
                         .start = part.start,
                         .o = o.Rows(part.first_row, part.tokens)});
  }
  return sequences;
}

// The last blocks of a sequence see the most keys: they go first.
std::vector<QueryBlock> Blocks(const std::vector<Sequence>& sequences) {
  std::vector<QueryBlock> blocks;
  for (const Sequence& s : sequences) {
    for (int64_t first = 0; first < s.qkv.rows; first += kQueryBlock) {
      blocks.push_back({&s, first, std::min(kQueryBlock, s.qkv.rows - first)});
    }
  }
  std::sort(blocks.begin(), blocks.end(),
            [](const QueryBlock& a, const QueryBlock& b) { return a.visible() > b.visible(); });
  return blocks;
}

// Turns the rows of a sequence, and stores its keys and values.
void StoreSequence(ThreadPool& pool, const Sequence& s, Tensor inv_freq) {
  const int64_t width = s.shape.rotary_dim;
  ParallelRows(pool, s.qkv.rows, 2 * s.shape.heads * s.shape.head_dim + 32 * width,
               [&](int64_t begin, int64_t end) {
                 for (int64_t row = begin; row < end; ++row) {
                   if (width > 0) {
                     RotaryTurns(s.start + row, F32Row(inv_freq, 0), width / 2,
                                 s.turns + row * width);
                   }
                   StoreKeysAndValues(s, row);
                 }
               });
}

}  // namespace

void AttentionSequence(ThreadPool& pool, const AttentionShape& shape, Tensor qkv, Tensor inv_freq,
                       PagedRows& pages, Tensor page_tables, const SequenceParts& parts, Tensor o) {
  assert(parts.rows() == qkv.rows && page_tables.rows == std::ssize(parts.parts));
  assert(shape.window == 0 || pages.page_tokens() == kWindowBlock);
  float* turns = ThreadScratch<float>(ScratchUse::kAttentionRotation, qkv.rows * shape.rotary_dim);
  const std::vector<Sequence> sequences =
      Sequences(shape, qkv, pages, page_tables, parts, turns, o);
  int64_t products = 0;
  for (const Sequence& s : sequences) {
    StoreSequence(pool, s, inv_freq);
    products += s.qkv.rows * shape.head_dim * (s.start + s.qkv.rows - s.table_start());
  }
  const std::vector<QueryBlock> blocks = Blocks(sequences);
  const auto count = static_cast<int64_t>(blocks.size());
  if (count == 0) return;
  ParallelRows(pool, count * shape.heads, products / count, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const QueryBlock& block = blocks[static_cast<size_t>(i / shape.heads)];
      AttendBlock(*block.sequence, i % shape.heads, block.first, block.count);
    }
  });
}

}  // namespace hippodrome::cpu
