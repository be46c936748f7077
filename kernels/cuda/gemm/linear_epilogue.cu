#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/gemm/linear.h"
#include "kernels/cuda/gemm/linear_epilogue.cuh"

namespace hippodrome::cuda {
namespace {

constexpr int kFinishThreads = 256;
constexpr int kFinishColumns = 4;  // of each thread

// Blocks: (rows, columns / (kFinishThreads * kFinishColumns), rounded up). sums: rows of
// sums_stride.
template <typename Y>
__global__ void __launch_bounds__(kFinishThreads)
    FinishLinearKernel(const float* sums, int64_t sums_stride, int columns,
                       EpilogueArguments<Y> epilogue) {
  const int64_t row = blockIdx.x;
  const int first = static_cast<int>(blockIdx.y) * kFinishThreads * kFinishColumns +
                    static_cast<int>(threadIdx.x);
  float sum[kFinishColumns];
  EpilogueValues values[kFinishColumns];
#pragma unroll
  for (int i = 0; i < kFinishColumns; ++i) {
    const int column = first + i * kFinishThreads;
    if (column >= columns) break;
    sum[i] = sums[row * sums_stride + column];
    values[i] = LoadEpilogue(epilogue, row, column);
  }
#pragma unroll
  for (int i = 0; i < kFinishColumns; ++i) {
    const int column = first + i * kFinishThreads;
    if (column >= columns) break;
    Store(epilogue, sum[i], values[i], row, column);
  }
}

template <typename Y>
void Finish(Device& device, const Tensor& sums, const Epilogue& epilogue, const Tensor& y) {
  constexpr int64_t kBlockColumns = kFinishThreads * kFinishColumns;
  Launch(device, "linear_finish", FinishLinearKernel<Y>,
         {.blocks = dim3(static_cast<unsigned>(y.rows),
                         static_cast<unsigned>((y.cols + kBlockColumns - 1) / kBlockColumns)),
          .threads = dim3(kFinishThreads)},
         DeviceRow<float>(sums, 0), sums.stride, static_cast<int>(y.cols),
         MakeEpilogue<Y>(epilogue, y));
}

}  // namespace

void FinishLinear(Device& device, Tensor sums, const Epilogue& epilogue, Tensor y) {
  assert(sums.rows == y.rows && sums.cols == y.cols);
  if (y.rows == 0) return;
  if (y.dtype == DType::kBF16) {
    Finish<BF16>(device, sums, epilogue, y);
  } else {
    Finish<float>(device, sums, epilogue, y);
  }
}

}  // namespace hippodrome::cuda
