// A block copies a row.
#include "kernels/cuda/rows/gather_rows.h"

#include <algorithm>

#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/base/row_vector.cuh"
#include "kernels/cuda/base/tensor_memory.h"

namespace hippodrome::cuda {
namespace {

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
  BeginDependent();
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

constexpr int64_t kMaxThreads = 256;

template <typename Y>
void Gather(Device& device, const Tensor& x, const Tensor& rows, const Tensor& y) {
  const GatherArguments<Y> arguments = {.x = DeviceRow<float>(x, 0),
                                        .x_stride = x.stride,
                                        .rows = DeviceRow<int32_t>(rows, 0),
                                        .d = static_cast<int>(y.cols),
                                        .y = DeviceRow<Y>(y, 0),
                                        .y_stride = y.stride};
  const bool aligned = RowsAreAligned(x, 4) && RowsAreAligned(y, 4);
  const int64_t vectors = aligned ? y.cols / 4 : y.cols;
  const int64_t warps = (std::min(vectors, kMaxThreads) + kWarp - 1) / kWarp;
  Launch(device, "gather_rows", aligned ? GatherRowsKernel<Y, 4> : GatherRowsKernel<Y, 1>,
         {.blocks = dim3(static_cast<unsigned>(y.rows)),
          .threads = dim3(static_cast<unsigned>(warps * kWarp)),
          .dependent = true},
         arguments);
}

}  // namespace

void GatherRows(Device& device, Tensor x, Tensor rows, Tensor y) {
  assert(x.dtype == DType::kF32 && x.cols == y.cols && rows.cols == y.rows);
  if (y.rows == 0) return;
  if (y.dtype == DType::kBF16) {
    Gather<BF16>(device, x, rows, y);
  } else {
    Gather<float>(device, x, rows, y);
  }
}

}  // namespace hippodrome::cuda
