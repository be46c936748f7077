// The constants of a decoder's SSM on a device.
#ifndef HIPPODROME_KERNELS_CUDA_SSM_SSM_WEIGHTS_H_
#define HIPPODROME_KERNELS_CUDA_SSM_SSM_WEIGHTS_H_

#include <memory>
#include <span>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cuda/base/device.h"

namespace hippodrome::cuda {

// x' = a x + u; y = Re sum_n w_n x'_n + D u.
struct DiagonalMode {
  float2 a, w;
};

// x' = d x - p r + b u with r = Re sum_n v_n x_n; y = Re sum_n c_n x'_n + D u: a step of a state
// matrix of normal plus low-rank form.
struct LowRankMode {
  float2 d, p, v, b, c;
};

// In device memory.
struct SsmView {
  int32_t channels;
  int32_t modes;
  int32_t low_rank;               // which of the two `constants` are
  const void* modes_of_channels;  // [channels, modes]
  const float* skip;              // [channels], D
};

class SsmConstants final : public SsmWeights {
 public:
  // `activations`: kBF16 or kF32, the dtype of u and y.
  SsmConstants(Device& device, const LongConvParameters& parameters, DType activations);

  int64_t bytes() const override { return bytes_; }
  DType activations() const { return activations_; }
  const SsmView& view() const { return view_; }

 private:
  DType activations_;
  int64_t bytes_ = 0;
  SsmView view_ = {};
  std::shared_ptr<void> modes_, skip_;
};

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_SSM_SSM_WEIGHTS_H_
