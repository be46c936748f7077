#include "kernels/cpu/rows/embedding.h"

#include <algorithm>

#include "kernels/cpu/base/memory.h"
#include "kernels/cpu/base/parallel_loops.h"

namespace hippodrome::cpu {
namespace {

void LoadToken(const PackedWeights& table, int32_t id, float* out) {
  if (id >= 0) return UnpackRow(table, id, out);
  std::fill_n(out, table.in(), 0.0f);
}

void Add(const AddedRows& added, int64_t row, float* out) {
  if (added.table.data == nullptr) return;
  const int32_t index = I32Row(added.indices, 0)[row];
  if (index < 0) return;
  assert(index < added.table.rows);
  const float* from = F32Row(added.table, index);
  for (int64_t c = 0; c < added.table.cols; ++c) out[c] += from[c];
}

}  // namespace

void Embedding(ThreadPool& pool, const PackedWeights& table, Tensor ids, const AddedRows& types,
               const AddedRows& positions, Tensor y) {
  assert(y.cols == table.in() && ids.cols == y.rows);
  // Every element of a packed row lies in a cache line of its own.
  const int64_t work = y.cols * 8;
  ParallelRows(pool, y.rows, work, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      float* out = F32Row(y, row);
      LoadToken(table, I32Row(ids, 0)[row], out);
      Add(types, row, out);
      Add(positions, row, out);
    }
  });
}

}  // namespace hippodrome::cpu
