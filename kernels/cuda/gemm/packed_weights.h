// Weight matrices on a device: floats row-major as in the file, so that they are uploaded as they
// are; integers in units.
#ifndef HIPPODROME_KERNELS_CUDA_GEMM_PACKED_WEIGHTS_H_
#define HIPPODROME_KERNELS_CUDA_GEMM_PACKED_WEIGHTS_H_

#include <memory>
#include <span>

#include "kernels/backend.h"
#include "kernels/cuda/base/device.h"

namespace hippodrome::cuda {

// Inputs of quantised rows that the lanes of a warp take at a time: one group of kI8, four of kI4.
inline constexpr int kUnitInputs = 128;

// W [out, in] in memory that starts at a multiple of 256 bytes. kF32 and kBF16: row r at r * in.
// kI8 and kI4: a row is units() units, the last one filled up with zeros, and scales follow,
// [groups of units()][scale_columns()]. A unit of
//   kI8 is the integers;
//   kI4 is 64 bytes: byte 16 t + 4 j + i has, 8 higher each, integer 8 t + i of group j in its
//   lower
//       half and 8 t + 4 + i in its upper one, so that lane t of a product reads a part of each
//       group at once.
class PackedWeights : public LinearWeights {
 public:
  // Zeros; integers have scales of zero.
  PackedWeights(Device& device, int64_t out, int64_t in, DType dtype);
  // What is in `memory`, of that alignment, which must outlive this. REQUIRES: kF32 or kBF16.
  PackedWeights(void* memory, int64_t out, int64_t in, DType dtype);

  int64_t out() const override { return out_; }
  int64_t in() const override { return in_; }
  int64_t bytes() const override;

  DType dtype() const { return dtype_; }
  void* data() const { return memory_.get(); }

  // Of kI8 and kI4:
  int64_t units() const { return (in_ + kUnitInputs - 1) / kUnitInputs; }
  int64_t row_bytes() const;  // of integers
  // `out` filled up to a multiple of the widest block of columns.
  int64_t scale_columns() const { return (out_ + 31) / 32 * 32; }
  BF16* scales() const;

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
