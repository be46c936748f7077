#include "kernels/cpu/rows/gather.h"

#include <algorithm>
#include <cassert>

#include "kernels/cpu/base/memory.h"
#include "kernels/cpu/base/parallel_loops.h"

namespace hippodrome::cpu {
namespace {

void LoadToken(const PackedWeights& table, int32_t id, float* out) {
  if (id >= 0) return UnpackRow(table, id, out);
  std::fill_n(out, table.in(), 0.0f);
}

void AddRow(const AddedRows& added, int64_t row, float* out) {
  if (added.table.data == nullptr) return;
  const int32_t index = I32Row(added.indices, 0)[row];
  if (index < 0) return;
  assert(index < added.table.rows);
  const float* from = F32Row(added.table, index);
  for (int64_t c = 0; c < added.table.cols; ++c) out[c] += from[c];
}

// Columns of a task: whole cache lines, and several of them, so that a row is read in runs.
constexpr int64_t kColumns = 64;

void ScatterColumns(const Tensor& dy, const int32_t* indices, const Tensor& dtable) {
  for (int64_t row = 0; row < dy.rows; ++row) {
    assert(indices[row] >= -1 && indices[row] < dtable.rows);
    if (indices[row] < 0) continue;
    const float* from = F32Row(dy, row);
    float* to = F32Row(dtable, indices[row]);
    for (int64_t c = 0; c < dy.cols; ++c) to[c] += from[c];
  }
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
      AddRow(types, row, out);
      AddRow(positions, row, out);
    }
  });
}

void GatherRows(ThreadPool& pool, Tensor x, Tensor rows, Tensor y) {
  assert(rows.rows == 1 && rows.cols == y.rows && x.cols == y.cols);
  const int32_t* from = I32Row(rows, 0);
  ParallelRows(pool, y.rows, y.cols, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      assert(from[row] >= -1 && from[row] < x.rows);
      if (from[row] < 0) {
        std::fill_n(F32Row(y, row), y.cols, 0.0f);
      } else {
        std::copy_n(F32Row(x, from[row]), y.cols, F32Row(y, row));
      }
    }
  });
}

void ScatterRows(ThreadPool& pool, Tensor dy, Tensor indices, Tensor dtable) {
  assert(indices.rows == 1 && indices.cols == dy.rows && dtable.cols == dy.cols);
  // Any two rows may name the same index: tasks share columns out.
  const int64_t tasks = (dy.cols + kColumns - 1) / kColumns;
  ParallelRows(pool, tasks, dy.rows * kColumns, [&](int64_t begin, int64_t end) {
    const int64_t first = begin * kColumns;
    const int64_t count = std::min(end * kColumns, dy.cols) - first;
    ScatterColumns(dy.Cols(first, count), I32Row(indices, 0), dtable.Cols(first, count));
  });
}

}  // namespace hippodrome::cpu
