// A few adjacent elements of a row, moved at once.
#ifndef HIPPODROME_KERNELS_CUDA_BASE_ROW_VECTOR_CUH_
#define HIPPODROME_KERNELS_CUDA_BASE_ROW_VECTOR_CUH_

#include "kernels/cuda/base/device_code.cuh"
#include "kernels/tensor.h"

namespace hippodrome::cuda {

template <typename T, int kWidth>
struct alignas(sizeof(T) * kWidth) RowVector {
  T values[kWidth];
};

// The address must be a multiple of the size of the vector.
template <typename T, int kWidth>
__device__ inline RowVector<T, kWidth> LoadVector(const T* from) {
#ifdef __CUDACC__
  return *reinterpret_cast<const RowVector<T, kWidth>*>(from);
#else
  RowVector<T, kWidth> vector;
  cuda_on_cpu::MoveVector(&vector, from, sizeof(vector));
  return vector;
#endif
}
template <typename T, int kWidth>
__device__ inline void StoreVector(const RowVector<T, kWidth>& vector, T* to) {
#ifdef __CUDACC__
  *reinterpret_cast<RowVector<T, kWidth>*>(to) = vector;
#else
  cuda_on_cpu::MoveVector(to, &vector, sizeof(vector));
#endif
}

// Whether the rows of a matrix can be moved in vectors of `width` elements.
inline bool RowsAreAligned(const Tensor& tensor, int64_t width) {
  const size_t bytes = static_cast<size_t>(width) * SizeOf(tensor.dtype);
  return reinterpret_cast<uintptr_t>(tensor.data) % bytes == 0 && tensor.cols % width == 0 &&
         (tensor.rows == 1 || tensor.stride % width == 0);
}

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_BASE_ROW_VECTOR_CUH_
