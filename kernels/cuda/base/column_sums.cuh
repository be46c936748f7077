// Sums over the rows of a matrix, column by column: in blocks of rows of a fixed size, then the
// blocks in their order.
#ifndef HIPPODROME_KERNELS_CUDA_BASE_COLUMN_SUMS_CUH_
#define HIPPODROME_KERNELS_CUDA_BASE_COLUMN_SUMS_CUH_

#include "kernels/cuda/base/elements.cuh"

namespace hippodrome::cuda {

inline constexpr int kSumWarps = 8;
inline constexpr int64_t kSumBlockRows = 16 * kSumWarps;
inline constexpr int kSumBlockColumns = 256;

// parts[b, c] = sum of value(row, c) over the rows of block b. Blocks: (columns / kWarp, rows /
// kSumBlockRows), rounded up.
template <class Value>
__global__ void __launch_bounds__(kSumWarps* kWarp)
    ColumnPartsKernel(ElementsShape shape, Value value, float* parts) {
  __shared__ float sums[kSumWarps][kWarp];
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int64_t column = int64_t{blockIdx.x} * kWarp + lane;
  const int64_t begin = int64_t{blockIdx.y} * kSumBlockRows;
  const int64_t end = min(begin + kSumBlockRows, shape.rows);
  float sum = 0;
  if (column < shape.cols) {
    for (int64_t row = begin + warp; row < end; row += kSumWarps) sum += value(row, column);
  }
  sums[warp][lane] = sum;
  __syncthreads();
  if (warp > 0 || column >= shape.cols) return;
  for (int w = 1; w < kSumWarps; ++w) sum += sums[w][lane];
  parts[blockIdx.y * shape.cols + column] = sum;
}

// to[c] += sum of parts[b, c] over the blocks b.
static __global__ void __launch_bounds__(kSumBlockColumns)
    AddColumnPartsKernel(const float* parts, int64_t blocks, int64_t cols, float* to) {
  const int64_t column = int64_t{blockIdx.x} * kSumBlockColumns + threadIdx.x;
  if (column >= cols) return;
  float sum = 0;
  for (int64_t b = 0; b < blocks; ++b) sum += parts[b * cols + column];
  to[column] += sum;
}

// to [1, cols] f32 += sum over rows of value(row, column), a struct with a __device__ operator().
template <class Value>
void AddColumnSums(Device& device, const char* operation, const ElementsShape& shape,
                   const Value& value, const Tensor& to) {
  if (shape.rows == 0 || shape.cols == 0) return;
  const auto blocks = [](int64_t size, int64_t of) {
    return static_cast<unsigned>((size + of - 1) / of);
  };
  const unsigned row_blocks = blocks(shape.rows, kSumBlockRows);
  float* parts = static_cast<float*>(
      device.Scratch(ScratchUse::kColumnSums, row_blocks * shape.cols * sizeof(float)));
  Launch(
      device, operation, ColumnPartsKernel<Value>,
      {.blocks = dim3(blocks(shape.cols, kWarp), row_blocks), .threads = dim3(kSumWarps * kWarp)},
      shape, value, parts);
  Launch(device, operation, AddColumnPartsKernel,
         {.blocks = dim3(blocks(shape.cols, kSumBlockColumns)), .threads = dim3(kSumBlockColumns)},
         parts, int64_t{row_blocks}, shape.cols, DeviceRow<float>(to, 0));
}

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_BASE_COLUMN_SUMS_CUH_
