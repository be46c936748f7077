// AttentionSequence: blocks of queries against blocks of keys, as products of small matrices.
#include <algorithm>
#include <cmath>

#include "kernels/cpu/attention/attention.h"
#include "kernels/cpu/attention/rotary.h"
#include "kernels/cpu/attention/softmax_block.h"
#include "kernels/cpu/base/parallel_rows.h"
#include "kernels/cpu/base/scratch.h"
#include "kernels/cpu/base/tensor_memory.h"
#include "kernels/cpu/gemm/microkernel.h"
#include "kernels/cpu/gemm/packed_weights.h"

namespace hippodrome::cpu {
namespace {

static_assert(kKeyBlock == kPanelColumns, "a block of keys is multiplied as a panel");

// Queries that share a gathered block of keys.
constexpr int64_t kQueryBlock = 42 * kMicrokernelRows;

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
  float* q;       // [queries][head_dim], rotated and scaled
  float* keys;    // [head_dim][kKeyBlock]
  float* values;  // [panels][kKeyBlock][kPanelColumns]
  float* sums;    // [panels][queries][kPanelColumns]
  float* scores;  // [kMicrokernelRows][kKeyBlock]
  RunningSoftmax softmax[kQueryBlock];
  int64_t panels;  // of head_dim
};

ChunkWorkspace NewWorkspace(int64_t head_dim) {
  ChunkWorkspace w;
  w.panels = (head_dim + kPanelColumns - 1) / kPanelColumns;
  const int64_t sizes[] = {kQueryBlock * head_dim, head_dim * kKeyBlock,
                           w.panels * kKeyBlock * kPanelColumns,
                           w.panels * kQueryBlock * kPanelColumns, kMicrokernelRows * kKeyBlock};
  float** const parts[] = {&w.q, &w.keys, &w.values, &w.sums, &w.scores};
  int64_t total = 0;
  for (int64_t size : sizes) total += (size + 15) / 16 * 16;
  float* next = ThreadScratch<float>(ScratchUse::kAttentionTile, total);
  for (int i = 0; i < 5; ++i) {
    *parts[i] = next;
    next += (sizes[i] + 15) / 16 * 16;
  }
  return w;
}

void StoreRow(const Sequence& s, int64_t row) {
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
  for (int64_t p = 0; p < w.panels; ++p) {
    const int64_t first = p * kPanelColumns;
    const int64_t width = std::min(kPanelColumns, head_dim - first);
    float* panel = w.values + p * kKeyBlock * kPanelColumns;
    std::fill_n(panel, kKeyBlock * kPanelColumns, 0.0f);
    for (int64_t i = 0; i < count; ++i) {
      std::copy_n(keys[i] + s.pages.value_offset() + first, width, panel + i * kPanelColumns);
    }
  }
}

// Queries [first, first + rows) of the block, which start at `position`, against the gathered keys,
// which start at `begin`.
void AttendTile(const ChunkWorkspace& w, RunningSoftmax* softmax, int64_t head_dim, int64_t first,
                int rows, int64_t position, int64_t begin, bool first_block) {
  MicrokernelF32({w.q + first * head_dim, head_dim, w.keys, head_dim, rows, false, w.scores});
  float factors[kMicrokernelRows];
  ExtendSoftmax(w.scores, rows, position + 1 - begin, softmax + first, factors);
  for (int r = 0; r < rows; ++r) {
    if (factors[r] == 1 || first_block) continue;
    for (int64_t p = 0; p < w.panels; ++p) {
      Scale(factors[r], kPanelColumns, w.sums + (p * kQueryBlock + first + r) * kPanelColumns);
    }
  }
  for (int64_t p = 0; p < w.panels; ++p) {
    MicrokernelF32({w.scores, kKeyBlock, w.values + p * kKeyBlock * kPanelColumns, kKeyBlock, rows,
                    !first_block, w.sums + (p * kQueryBlock + first) * kPanelColumns});
  }
}

void StoreOutput(const Sequence& s, const ChunkWorkspace& w, int64_t head, int64_t first,
                 int64_t count) {
  const int64_t head_dim = s.shape.head_dim;
  for (int64_t i = 0; i < count; ++i) {
    float* out = F32Row(s.o, first + i) + head * head_dim;
    for (int64_t j = 0; j < head_dim; ++j) {
      const int64_t panel = j / kPanelColumns;
      out[j] = w.sums[(panel * kQueryBlock + i) * kPanelColumns + j % kPanelColumns];
    }
    Scale(1 / w.softmax[i].total, head_dim, out);
  }
}

// Rows [first, first + count) of one head.
void AttendBlock(const Sequence& s, int64_t head, int64_t first, int64_t count) {
  const int64_t head_dim = s.shape.head_dim;
  ChunkWorkspace w = NewWorkspace(head_dim);
  LoadQueries(s, head, first, count, w.q);
  const int64_t end = s.start + first + count;  // of the visible positions
  const int64_t tiles = (count + kMicrokernelRows - 1) / kMicrokernelRows;
  for (int64_t begin = 0; begin < end; begin += kKeyBlock) {
    LoadKeys(s, head, begin, std::min(kKeyBlock, end - begin), w);
    for (int64_t t = 0; t < tiles; ++t) {
      const int64_t row = t * kMicrokernelRows;
      const int rows = static_cast<int>(std::min<int64_t>(kMicrokernelRows, count - row));
      const int64_t position = s.start + first + row;
      if (position + rows <= begin) continue;  // the whole tile lies before these keys
      AttendTile(w, w.softmax, head_dim, row, rows, position, begin, begin == 0);
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
                   StoreRow(s, row);
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
