#include "kernels/cuda/rows/gather_rows.h"

#include <algorithm>

#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/base/tensor_memory.h"
#include "kernels/cuda/rows/gather_rows.cuh"

namespace hippodrome::cuda {
namespace {

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
          .threads = dim3(static_cast<unsigned>(warps * kWarp))},
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
