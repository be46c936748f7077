// Tensors of the CPU backend: f32 activations and i32 indices in plain memory.
#ifndef HIPPODROME_KERNELS_CPU_BASE_TENSOR_MEMORY_H_
#define HIPPODROME_KERNELS_CPU_BASE_TENSOR_MEMORY_H_

#include <span>

#include "kernels/tensor.h"

namespace hippodrome::cpu {

// A zeroed matrix of `dtype` (kF32 or kI32) with adjacent rows.
OwnedTensor NewMatrix(int64_t rows, int64_t cols, DType dtype);

// Row-major `values` to or from a view whose rows may be apart. REQUIRES: sizes and types agree.
void CopyIn(std::span<const float> values, Tensor dst);
void CopyIn(std::span<const int32_t> values, Tensor dst);
void CopyOut(Tensor src, std::span<float> values);
void CopyOut(Tensor src, std::span<int32_t> values);

// Element (row, 0) of a view.
inline float* F32Row(const Tensor& tensor, int64_t row) {
  assert(tensor.dtype == DType::kF32);
  return static_cast<float*>(tensor.data) + row * tensor.stride;
}
inline int32_t* I32Row(const Tensor& tensor, int64_t row) {
  assert(tensor.dtype == DType::kI32);
  return static_cast<int32_t*>(tensor.data) + row * tensor.stride;
}

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_BASE_TENSOR_MEMORY_H_
