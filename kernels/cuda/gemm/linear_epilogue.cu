#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/gemm/linear.h"
#include "kernels/cuda/gemm/linear_epilogue.cuh"

namespace hippodrome::cuda {
namespace {

constexpr int kFinishThreads = 256;
constexpr int kFinishColumns = 4;  // of each thread

// Blocks: (rows, columns / (kFinishThreads * kFinishColumns), rounded up). sums: rows of
// sums_stride. kWidth: of vectors in which all rows can be moved, 1 or kFinishColumns.
template <typename Y, int kWidth>
__global__ void __launch_bounds__(kFinishThreads)
    FinishLinearKernel(const float* sums, int64_t sums_stride, int columns,
                       EpilogueArguments<Y> epilogue) {
  const int64_t row = blockIdx.x;
  constexpr int kVectors = kFinishColumns / kWidth;
  const int first = static_cast<int>(blockIdx.y) * kFinishThreads * kFinishColumns +
                    static_cast<int>(threadIdx.x) * kWidth;
  float sum[kVectors][kWidth];
  EpilogueValues<kWidth> values[kVectors];
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    const int column = first + i * kFinishThreads;
    if (column >= columns) break;
    LoadOr(0.0f, sums + row * sums_stride + column, sum[i]);
    values[i] = LoadEpilogue<kWidth>(epilogue, row, column);
  }
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    const int column = first + i * kFinishThreads;
    if (column >= columns) break;
    Store(epilogue, sum[i], values[i], row, column);
  }
}

template <typename Y>
void Finish(Device& device, const Tensor& sums, const Epilogue& epilogue, const Tensor& y) {
  constexpr int64_t kBlockColumns = kFinishThreads * kFinishColumns;
  const bool aligned =
      RowsAreAligned(sums, kFinishColumns) && EpilogueIsAligned(epilogue, y, kFinishColumns);
  Launch(device, "linear_finish",
         aligned ? FinishLinearKernel<Y, kFinishColumns> : FinishLinearKernel<Y, 1>,
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
