// AttentionStep: one query per sequence and head, which reads every cached row once.
#include <algorithm>
#include <cmath>

#include "kernels/cpu/attention/attention.h"
#include "kernels/cpu/attention/rotary.h"
#include "kernels/cpu/attention/softmax.h"
#include "kernels/cpu/base/memory.h"
#include "kernels/cpu/base/parallel_loops.h"

namespace hippodrome::cpu {
namespace {

// One head of one sequence at its new position.
struct Query {
  const float* q;             // [head_dim] as projected; the key lies d floats later, the value 2 d
  const float* turns;         // of the position
  const int32_t* page_table;  // from the page of `first` on
  int64_t first;              // of the positions that it sees
  int64_t position;
  int64_t head;
  float* o;  // [head_dim]

  int64_t seen() const { return position + 1 - first; }
};

void StoreKeyValue(const AttentionShape& shape, const PagedRows& pages, const Query& query) {
  const int64_t d = shape.heads * shape.head_dim;
  float* key = ThreadScratch<float>(ScratchUse::kAttentionTile, shape.head_dim);
  Rotate(query.q + d, query.turns, shape.rotary_dim / 2, shape.head_dim, key);
  pages.Store(query.page_table, query.seen() - 1, query.head, key, query.q + 2 * d);
}

// The keys of a block, which starts `begin` after the first that the query sees.
template <typename T>
KeyRows<T> FindRows(const AttentionShape& shape, const PagedRows& pages, const Query& query,
                    int64_t begin) {
  KeyRows<T> rows;
  rows.count = std::clamp<int64_t>(query.seen() - begin, 0, kKeyBlock);
  rows.head_dim = shape.head_dim;
  rows.value_offset = pages.value_offset();
  pages.FindKeys(query.page_table, query.head, begin, rows.count, rows.keys);
  return rows;
}

template <typename T>
void Attend(const AttentionShape& shape, const PagedRows& pages, const Query& query) {
  float* q = ThreadScratch<float>(ScratchUse::kAttentionTile, shape.head_dim);
  Rotate(query.q, query.turns, shape.rotary_dim / 2, shape.head_dim, q);
  Scale(1 / std::sqrt(static_cast<float>(shape.head_dim)), shape.head_dim, q);

  std::fill_n(query.o, shape.head_dim, 0.0f);
  RunningSoftmax softmax;
  KeyRows<T> rows = FindRows<T>(shape, pages, query, 0);
  for (int64_t begin = 0; begin < query.seen(); begin += kKeyBlock) {
    const KeyRows<T> next = FindRows<T>(shape, pages, query, begin + kKeyBlock);
    float scores[kKeyBlock];
    ScoreKeys(q, rows, scores);
    float factor;
    ExtendSoftmax(scores, 1, rows.count, &softmax, &factor);
    AddValues(scores, rows, factor, next, query.o);
    rows = next;
  }
  Scale(1 / softmax.total, shape.head_dim, query.o);
}

}  // namespace

void AttentionStep(ThreadPool& pool, const AttentionShape& shape, Tensor qkv, Tensor inv_freq,
                   PagedRows& pages, Tensor page_tables, Tensor positions, Tensor o) {
  const int64_t rows = qkv.rows;
  const int32_t* position = I32Row(positions, 0);
  const float* turns =
      AllTurns(pool, shape, inv_freq, rows, [&](int64_t row) { return position[row]; });
  int64_t cached = 1;
  for (int64_t row = 0; row < rows; ++row)
    cached += position[row] + 1 - shape.FirstSeen(position[row]);
  const int64_t average_work = 2 * shape.head_dim * cached / std::max<int64_t>(1, rows);

  const auto for_queries = [&](int64_t work, const auto& each) {
    ParallelRows(pool, rows * shape.heads, work, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t row = i / shape.heads;
        const int64_t head = i % shape.heads;
        each(Query{.q = F32Row(qkv, row) + head * shape.head_dim,
                   .turns = turns + row * shape.rotary_dim,
                   .page_table = I32Row(page_tables, row),
                   .first = shape.FirstSeen(position[row]),
                   .position = position[row],
                   .head = head,
                   .o = F32Row(o, row) + head * shape.head_dim});
      }
    });
  };
  // A row may see what others of its sequence bring.
  for_queries(2 * shape.head_dim, [&](const Query& query) {
    if (query.position >= 0) StoreKeyValue(shape, pages, query);
  });
  const auto attend = pages.dtype() == DType::kF32 ? Attend<float> : Attend<BF16>;
  for_queries(average_work, [&](const Query& query) {
    if (query.position >= 0) {
      attend(shape, pages, query);
    } else {
      std::fill_n(query.o, shape.head_dim, 0.0f);
    }
  });
}

}  // namespace hippodrome::cpu
