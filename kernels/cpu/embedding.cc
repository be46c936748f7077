#include "kernels/cpu/embedding.h"

#include "kernels/cpu/parallel_rows.h"
#include "kernels/cpu/tensor_memory.h"

namespace hippodrome::cpu {

void Embedding(ThreadPool& pool, const PackedWeights& table, Tensor position_table, Tensor ids,
               Tensor positions, Tensor y) {
  assert(y.cols == table.in() && ids.cols == y.rows);
  // Every element of a packed row lies in a cache line of its own.
  const int64_t work = y.cols * 8;
  ParallelRows(pool, y.rows, work, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      float* out = F32Row(y, row);
      UnpackRow(table, I32Row(ids, 0)[row], out);
      if (position_table.data == nullptr) continue;
      const int32_t position = I32Row(positions, 0)[row];
      if (position < 0) continue;
      assert(position < position_table.rows);
      const float* p = F32Row(position_table, position);
      for (int64_t c = 0; c < y.cols; ++c) out[c] += p[c];
    }
  });
}

}  // namespace hippodrome::cpu
