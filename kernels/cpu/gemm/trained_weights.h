// Matrices that products and their backwards take, and the packing of panels (packed_weights.h) out
// of f32 rows, which these need at every step.
#ifndef HIPPODROME_KERNELS_CPU_GEMM_TRAINED_WEIGHTS_H_
#define HIPPODROME_KERNELS_CPU_GEMM_TRAINED_WEIGHTS_H_

#include <span>
#include <vector>

#include "kernels/cpu/base/thread_pool.h"
#include "kernels/cpu/gemm/packed_weights.h"
#include "kernels/tensor.h"

namespace hippodrome::cpu {

// W, wherever packed weights serve, together with W^T.
class TrainedWeights final : public PackedWeights {
 public:
  // Zero until packed. REQUIRES: as of PackedWeights.
  TrainedWeights(int64_t out, int64_t in, DType dtype)
      : PackedWeights(out, in, dtype), transposed_(in, out, dtype) {}

  int64_t bytes() const override { return PackedWeights::bytes() + transposed_.bytes(); }
  const PackedWeights& transposed() const { return transposed_; }

 private:
  PackedWeights transposed_;
};

// The contract of TrainingBackend::PackTrainedLinear.
void PackTrainedLinear(ThreadPool& pool, std::span<const Tensor> parts, const TrainedWeights& w);

// Where the rows of a matrix start.
using RowPointers = std::vector<const float*>;
RowPointers RowsOf(std::span<const Tensor> parts);

// W[r, k] = rows[r][k]. REQUIRES: out() rows of in() values. kBF16 rounds to nearest even.
void PackRows(ThreadPool& pool, const RowPointers& rows, const PackedWeights& w);

// W[c, k] = rows[k][c]: the rows are the columns of W. REQUIRES: in() rows of out() values.
void PackColumns(ThreadPool& pool, const RowPointers& rows, const PackedWeights& w);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_GEMM_TRAINED_WEIGHTS_H_
