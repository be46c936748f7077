#include "kernels/cpu/gemm/trained_weights.h"

#include "kernels/cpu/gemm/panel_packing.h"

namespace hippodrome::cpu {

void PackTrainedLinear(ThreadPool& pool, std::span<const Tensor> parts, const TrainedWeights& w) {
  const RowPointers rows = RowsOf(parts);
  PackRows(pool, rows, w);
  PackColumns(pool, rows, w.transposed());
}

}  // namespace hippodrome::cpu
