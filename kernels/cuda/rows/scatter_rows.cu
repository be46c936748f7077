// The first row of an index sums all rows of that index, in their
// order, so that no two blocks write the same row and nothing is sorted.
#include "kernels/cuda/rows/scatter_rows.h"

#include "kernels/cuda/base/elements.cuh"

namespace hippodrome::cuda {
namespace {

constexpr int kScatterWarps = 4;
constexpr int kScatterColumns = 4;  // of each lane
constexpr int kScatterBlockColumns = kScatterWarps * kScatterColumns * kWarp;

struct ScatterArguments {
  Elements<const float> dy;
  const int32_t* indices;
  int rows;
  int d;
  Elements<float> dtable;
};

// Of the rows [first, first + kWarp) those from `begin` on whose index is `index`, as bits.
__device__ inline unsigned RowsOfIndex(const ScatterArguments& a, int first, int begin,
                                       int32_t index) {
  const int row = first + static_cast<int>(threadIdx.x) % kWarp;
  return __ballot_sync(kAllLanes, row >= begin && row < a.rows && a.indices[row] == index);
}

// Blocks: (rows, columns / kScatterBlockColumns, rounded up). Warps share out the columns and work
// on their own.
__global__ void __launch_bounds__(kScatterWarps* kWarp) ScatterRowsKernel(ScatterArguments a) {
  const int row = static_cast<int>(blockIdx.x);
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp =
      static_cast<int>(blockIdx.y) * kScatterWarps + static_cast<int>(threadIdx.x) / kWarp;
  const int column = warp * kScatterColumns * kWarp + lane;
  const int32_t index = a.indices[row];
  if (index < 0 || warp * kScatterColumns * kWarp >= a.d) return;
  const int stretch = row / kWarp * kWarp;
  for (int first = 0; first < stretch; first += kWarp) {
    if (RowsOfIndex(a, first, 0, index) != 0) return;
  }
  const unsigned before = (1u << (row - stretch)) - 1;
  if ((RowsOfIndex(a, stretch, 0, index) & before) != 0) return;
  float sums[kScatterColumns] = {};
  for (int first = stretch; first < a.rows; first += kWarp) {
    const unsigned rows = RowsOfIndex(a, first, row, index);
    if (rows == 0) continue;
#pragma unroll 4
    for (int i = 0; i < kWarp; ++i) {
      if ((rows >> i & 1) == 0) continue;
      for (int j = 0; j < kScatterColumns; ++j) {
        const int c = column + j * kWarp;
        if (c < a.d) sums[j] += a.dy.At(first + i, c);
      }
    }
  }
  for (int j = 0; j < kScatterColumns; ++j) {
    const int c = column + j * kWarp;
    if (c < a.d) a.dtable.At(index, c) += sums[j];
  }
}

}  // namespace

void ScatterRows(Device& device, Tensor dy, Tensor indices, Tensor dtable) {
  assert(indices.rows == 1 && indices.cols == dy.rows && dtable.cols == dy.cols);
  if (dy.rows == 0 || dy.cols == 0) return;
  Launch(device, "scatter_rows", ScatterRowsKernel,
         {.blocks = dim3(
              static_cast<unsigned>(dy.rows),
              static_cast<unsigned>((dy.cols + kScatterBlockColumns - 1) / kScatterBlockColumns)),
          .threads = dim3(kScatterWarps * kWarp)},
         ScatterArguments{.dy = ElementsOf<const float>(dy),
                          .indices = DeviceRow<int32_t>(indices, 0),
                          .rows = static_cast<int>(dy.rows),
                          .d = static_cast<int>(dy.cols),
                          .dtable = ElementsOf<float>(dtable)});
}

}  // namespace hippodrome::cuda
