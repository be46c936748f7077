// The kernel of gather_rows.h: a block copies a row.
#ifndef HIPPODROME_KERNELS_CUDA_ROWS_GATHER_ROWS_CUH_
#define HIPPODROME_KERNELS_CUDA_ROWS_GATHER_ROWS_CUH_

#include "kernels/cuda/base/row_vector.cuh"

namespace hippodrome::cuda {

template <typename Y>
struct GatherArguments {
  const float* x;  // rows of x_stride
  int64_t x_stride;
  const int32_t* rows;  // -1: zeros
  int d;
  Y* y;  // rows of y_stride
  int64_t y_stride;
};

// One block per row of y. With kWidth 4, d is a multiple of 4 and all rows are aligned for vectors
// of 4 elements.
template <typename Y, int kWidth>
__global__ void __launch_bounds__(256) GatherRowsKernel(GatherArguments<Y> a) {
  const int64_t row = a.rows[blockIdx.x];
  const float* x = a.x + row * a.x_stride;
  Y* y = a.y + int64_t{blockIdx.x} * a.y_stride;
  for (int column = static_cast<int>(threadIdx.x) * kWidth; column < a.d;
       column += static_cast<int>(blockDim.x) * kWidth) {
    RowVector<float, kWidth> from = {};
    if (row >= 0) from = LoadVector<float, kWidth>(x + column);
    RowVector<Y, kWidth> to;
    for (int i = 0; i < kWidth; ++i) to.values[i] = FromFloat<Y>(from.values[i]);
    StoreVector(to, y + column);
  }
}

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_ROWS_GATHER_ROWS_CUH_
