// What happens to every element of matrices of one shape alone: the kernel, and what starts it.
#ifndef HIPPODROME_KERNELS_CUDA_BASE_ELEMENTS_CUH_
#define HIPPODROME_KERNELS_CUDA_BASE_ELEMENTS_CUH_

#include <algorithm>
#include <initializer_list>

#include "kernels/cuda/base/device_code.cuh"
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/base/tensor_memory.h"

namespace hippodrome::cuda {

inline constexpr int kElementThreads = 256;
inline constexpr int kThreadElements = 4;

// A matrix in a kernel; data null: none.
template <typename T>
struct Elements {
  T* data;
  int64_t stride;

  __device__ T& At(int64_t row, int64_t column) const { return data[row * stride + column]; }
};

template <typename T>
Elements<T> ElementsOf(const Tensor& tensor) {
  return {tensor.data == nullptr ? nullptr : DeviceRow<T>(tensor, 0), tensor.stride};
}

struct ElementsShape {
  int64_t rows;
  int64_t cols;
};

// The shape of matrices of one shape whose elements may be named by other rows and columns: one row
// where that is possible.
inline ElementsShape JoinedShape(std::initializer_list<Tensor> matrices) {
  const Tensor& first = *matrices.begin();
  for (const Tensor& x : matrices) {
    assert(x.data == nullptr || (x.rows == first.rows && x.cols == first.cols));
    if (x.data != nullptr && x.stride != x.cols) return {first.rows, first.cols};
  }
  return {1, first.rows * first.cols};
}

// body(row, column) once for each. A block takes kThreadElements * blockDim.x columns of a row;
// blocks of a row are neighbours.
template <class Body>
__global__ void __launch_bounds__(kElementThreads)
    ForEachElementKernel(int64_t cols, unsigned blocks_of_row, Body body) {
  const int64_t row = blockIdx.x / blocks_of_row;
  const int64_t width = int64_t{blockDim.x} * kThreadElements;
  int64_t column = blockIdx.x % blocks_of_row * width + threadIdx.x;
#pragma unroll
  for (int i = 0; i < kThreadElements; ++i) {
    if (column < cols) body(row, column);
    column += blockDim.x;
  }
}

// `body`: a struct with a __device__ operator()(int64_t row, int64_t column) const.
template <class Body>
void ForEachElement(Device& device, const char* operation, const ElementsShape& shape,
                    const Body& body) {
  if (shape.rows == 0 || shape.cols == 0) return;
  const int64_t warps =
      std::min<int64_t>((shape.cols + kWarp - 1) / kWarp, kElementThreads / kWarp);
  const int64_t width = warps * kWarp * kThreadElements;
  const int64_t blocks_of_row = (shape.cols + width - 1) / width;
  Launch(device, operation, ForEachElementKernel<Body>,
         {.blocks = dim3(static_cast<unsigned>(shape.rows * blocks_of_row)),
          .threads = dim3(static_cast<unsigned>(warps * kWarp))},
         shape.cols, static_cast<unsigned>(blocks_of_row), body);
}

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_BASE_ELEMENTS_CUH_
