// Weight matrices on a device: row-major as in the file, so that they are uploaded as they are.
#ifndef HIPPODROME_KERNELS_CUDA_GEMM_PACKED_WEIGHTS_H_
#define HIPPODROME_KERNELS_CUDA_GEMM_PACKED_WEIGHTS_H_

#include <memory>
#include <span>

#include "kernels/backend.h"
#include "kernels/cuda/base/device.h"

namespace hippodrome::cuda {

// W [out, in], row r at r * in, kF32 or kBF16. The memory starts at a multiple of 256 bytes.
class PackedWeights : public LinearWeights {
 public:
  // Zeros.
  PackedWeights(Device& device, int64_t out, int64_t in, DType dtype);
  // What is in `memory`, of that alignment, which must outlive this.
  PackedWeights(void* memory, int64_t out, int64_t in, DType dtype);

  int64_t out() const override { return out_; }
  int64_t in() const override { return in_; }
  int64_t bytes() const override { return out_ * in_ * static_cast<int64_t>(SizeOf(dtype_)); }

  DType dtype() const { return dtype_; }
  void* data() const { return memory_.get(); }

 private:
  int64_t out_;
  int64_t in_;
  DType dtype_;
  std::shared_ptr<void> memory_;
};

// The contract of Backend::PackLinear.
std::unique_ptr<PackedWeights> PackLinear(Device& device, std::span<const HostMatrix> parts,
                                          DType dtype);

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_GEMM_PACKED_WEIGHTS_H_
