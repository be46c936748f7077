// Panels (packed_weights.h) out of f32 rows, for matrices that are packed at every step.
#ifndef HIPPODROME_KERNELS_CPU_GEMM_PANEL_PACKING_H_
#define HIPPODROME_KERNELS_CPU_GEMM_PANEL_PACKING_H_

#include <span>
#include <vector>

#include "kernels/cpu/base/thread_pool.h"
#include "kernels/cpu/gemm/packed_weights.h"
#include "kernels/tensor.h"

namespace hippodrome::cpu {

// Where the rows of a matrix start.
using RowPointers = std::vector<const float*>;
RowPointers RowsOf(std::span<const Tensor> parts);

// W[r, k] = rows[r][k]. REQUIRES: out() rows of in() values. kBF16 rounds to nearest even.
void PackRows(ThreadPool& pool, const RowPointers& rows, const PackedWeights& w);

// W[c, k] = rows[k][c]: the rows are the columns of W. REQUIRES: in() rows of out() values.
void PackColumns(ThreadPool& pool, const RowPointers& rows, const PackedWeights& w);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_GEMM_PANEL_PACKING_H_
