// Matrix products.
#ifndef HIPPODROME_KERNELS_CUDA_GEMM_LINEAR_H_
#define HIPPODROME_KERNELS_CUDA_GEMM_LINEAR_H_

#include <memory>

#include "kernels/cuda/gemm/packed_weights.h"

namespace hippodrome::cuda {

// y = epilogue(x W^T). Types of x, W and y: f32, f32, f32; f32, bf16, f32, where x is rounded to
// bf16; bf16, bf16 and either. Bias, gate and residual are of
// y's type.
struct LinearCall {
  Tensor x;  // [rows, in]
  const PackedWeights& w;
  const Epilogue& epilogue;
  Tensor y;  // [rows, out]
};

// A library for large products. Its order of summation may follow the number of rows.
class MatmulLibrary {
 public:
  virtual ~MatmulLibrary() = default;
  // False, and nothing is done, where the library does not take the call (alignment, types).
  virtual bool Linear(Device& device, const LinearCall& call) = 0;
};

// cuBLASLt; null in builds without it, as under the emulator.
std::unique_ptr<MatmulLibrary> MakeMatmulLibrary(Device& device);

// Our own kernel for few rows: reads every weight once per 8 rows, at the speed of memory. Takes
// every call; row i of y depends on row i of x alone, bit for bit.
void LinearStep(Device& device, const LinearCall& call);

// What follows a product, where the library does not do it itself: y = epilogue(sums).
// sums: [rows, out] f32; y: [rows, out], kF32 or kBF16, rounded once; the tensors of the epilogue
// are of y's type.
void FinishLinear(Device& device, Tensor sums, const Epilogue& epilogue, Tensor y);

// The contract of Backend::Linear: LinearStep for few rows and wherever the library does not help.
void Linear(Device& device, MatmulLibrary* library, const LinearCall& call);

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_GEMM_LINEAR_H_
