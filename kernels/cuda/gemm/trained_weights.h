// Weight matrices that are trained: packed again after every step, and multiplied from both sides.
#ifndef HIPPODROME_KERNELS_CUDA_GEMM_TRAINED_WEIGHTS_H_
#define HIPPODROME_KERNELS_CUDA_GEMM_TRAINED_WEIGHTS_H_

#include "kernels/cuda/gemm/packed_weights.h"

namespace hippodrome::cuda {

// W, and W^T beside it.
class TrainedWeights final : public PackedWeights {
 public:
  // Zeros.
  TrainedWeights(Device& device, int64_t out, int64_t in, DType dtype)
      : PackedWeights(device, out, in, dtype), transposed_(device, in, out, dtype) {}

  int64_t bytes() const override { return PackedWeights::bytes() + transposed_.bytes(); }
  const PackedWeights& transposed() const { return transposed_; }

 private:
  PackedWeights transposed_;  // [in, out]
};

// The contract of TrainingBackend::PackTrainedLinear; parts: f32.
void PackTrainedLinear(Device& device, std::span<const Tensor> parts, const TrainedWeights& w);

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_GEMM_TRAINED_WEIGHTS_H_
