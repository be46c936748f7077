// Matrices that products and their backwards take, packed anew at every step.
#ifndef HIPPODROME_KERNELS_CPU_GEMM_TRAINED_WEIGHTS_H_
#define HIPPODROME_KERNELS_CPU_GEMM_TRAINED_WEIGHTS_H_

#include <span>

#include "kernels/cpu/gemm/packed_weights.h"

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

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_GEMM_TRAINED_WEIGHTS_H_
