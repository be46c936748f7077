// Matrix products.
#ifndef HIPPODROME_KERNELS_CUDA_GEMM_LINEAR_H_
#define HIPPODROME_KERNELS_CUDA_GEMM_LINEAR_H_

#include <memory>
#include <optional>
#include <span>

#include "kernels/cuda/gemm/packed_weights.h"

namespace hippodrome::cuda {

// y = epilogue(x W^T). Types of x, W and y: f32, f32, f32; f32, bf16, f32, where x is rounded to
// bf16; bf16, bf16 and either; either, integers and either, where x is rounded to integers. Bias,
// gate and residual are of y's type.
struct LinearCall {
  Tensor x;  // [rows, in]
  const PackedWeights& w;
  const Epilogue& epilogue;
  Tensor y;  // [rows, out]
};

// A library for large products. Its order of summation may follow the number of rows, so on devices
// row i of y is the same for any number of rows within the error bound only. The same call gives
// the same bits each time, in every run on such a device.
class MatmulLibrary {
 public:
  virtual ~MatmulLibrary() = default;
  // False, and nothing is done, where the library does not take the call (alignment, types).
  virtual bool Linear(Device& device, const LinearCall& call) = 0;
};

// cuBLASLt; null in builds without it, as under the emulator.
std::unique_ptr<MatmulLibrary> MakeMatmulLibrary(Device& device);

// An algorithm that the library proposes for a product.
struct MatmulCandidate {
  bool supported;
  size_t workspace_bytes;
};

// Which of the proposals is taken, the library's order being best first: the first that is
// supported and needs no more than `workspace_bytes`. Nothing is timed: the choice, and with it the
// bits of a result, would depend on what else the machine does.
std::optional<size_t> ChooseCandidate(std::span<const MatmulCandidate> candidates,
                                      size_t workspace_bytes);

// The most rows that LinearStep() is the faster for.
inline constexpr int kStepRows = 8;

// Our own kernel for few rows: reads every weight once per 8 rows, at the speed of memory. Takes
// every call with weights of floats; row i of y depends on row i of x alone, bit for bit.
void LinearStep(Device& device, const LinearCall& call);

// The same behind a LayerNorm of x, whose output is in shared memory alone; call.x is not touched.
// Each block makes it anew, so no launch is between the two, and the bits are those of LayerNorm()
// and LinearStep(). REQUIRES: CanNormalizeInside().
void LayerNormLinearStep(Device& device, const Tensor& x, const NormParameters& norm,
                         const LinearCall& call);
// Whether LayerNormLinearStep() takes the call, and is the faster for it: weights, call.x and y of
// kBF16, whole vectors, so few rows that a block's warps have them all at once, and few blocks.
bool CanNormalizeInside(const Device& device, const Tensor& x, const NormParameters& norm,
                        const LinearCall& call);

// Products with weights of kI8 and kI4 (kernels/quantized_group.h), of any number of rows: reads
// every weight once per 16 rows or per 32, of many rows once per 128 of kI8, per 64 of kI4. Row i
// of y depends on row i of x alone, bit for bit.
void LinearQuantized(Device& device, const LinearCall& call);

// What follows a product, where the library does not do it itself: y = epilogue(sums).
// sums: [rows, out] f32; y: [rows, out], kF32 or kBF16, rounded once; the tensors of the epilogue
// are of y's type.
void FinishLinear(Device& device, Tensor sums, const Epilogue& epilogue, Tensor y);

// The contract of Backend::Linear. With weights of integers LinearQuantized(). With others the
// number of rows decides: LinearStep() for at most kStepRows, and wherever the library does not
// help; the library for more, which sums in another order.
void Linear(Device& device, MatmulLibrary* library, const LinearCall& call);

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_GEMM_LINEAR_H_
