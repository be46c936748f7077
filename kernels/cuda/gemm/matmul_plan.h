// Products as cuBLASLt is told of them. Its matrices are column-major: a row-major one is seen
// transposed there. So y = x W^T is asked for as D = A^T B + C with A = W^T, B = x^T, D = y^T, and
// C is the residual.
#ifndef HIPPODROME_KERNELS_CUDA_GEMM_MATMUL_PLAN_H_
#define HIPPODROME_KERNELS_CUDA_GEMM_MATMUL_PLAN_H_

#include <cublasLt.h>

#include <compare>

#include "kernels/cuda/gemm/linear.h"

namespace hippodrome::cuda {

inline constexpr size_t kMatmulWorkspaceBytes = 32 << 20;

inline bool Succeeded(cublasStatus_t status) { return status == CUBLAS_STATUS_SUCCESS; }

// Whether the library takes the types of the product itself, without its epilogue.
bool IsLibraryProduct(const LinearCall& call);
// Whether it computes what follows as Backend::Linear does: it adds C before the activation, has no
// gate, its GELU is that with tanh, and it reads a bias in vectors.
bool IsLibraryEpilogue(const Epilogue& epilogue);

// Everything that the choice of an algorithm may depend on.
struct Product {
  int64_t rows, in, out;
  int64_t x_stride, c_stride, y_stride;
  DType x, w, y;
  Epilogue::Activation activation;
  bool has_bias, has_residual;
  uint32_t x_alignment, w_alignment, c_alignment, y_alignment;  // in bytes, of the addresses

  auto operator<=>(const Product&) const = default;
};

Product DescribeProduct(const LinearCall& call);

// A product with its descriptors, and the algorithm that was chosen. Stays where it is made.
struct MatmulPlan {
  bool usable = false;
  cublasLtMatmulDescOpaque_t operation = {};
  cublasLtMatrixLayoutOpaque_t a = {}, b = {}, c = {}, d = {};
  cublasLtMatmulAlgo_t algorithm = {};
};

// False where the library refuses.
bool SetDescriptors(const Product& product, const void* bias, MatmulPlan& plan);
bool SetBias(const void* bias, MatmulPlan& plan);
bool SetPreference(const Product& product, cublasLtMatmulPreferenceOpaque_t& preference);

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_GEMM_MATMUL_PLAN_H_
