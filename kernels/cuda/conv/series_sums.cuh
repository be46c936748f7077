// The second stage of the sums of dK: over chunks of sequences and over the columns of a head.
#ifndef HIPPODROME_KERNELS_CUDA_CONV_SERIES_SUMS_CUH_
#define HIPPODROME_KERNELS_CUDA_CONV_SERIES_SUMS_CUH_

#include "kernels/cuda/conv/series_view.cuh"

namespace hippodrome::cuda {

inline constexpr int kSumThreads = 256;

// sums[l, head] += sum of partial [chunks, lags, columns], by `group` neighbouring threads for each
// (l, head), the heads of a lag being neighbours.  group: a power of two <= 32.
__global__ void __launch_bounds__(kSumThreads)
    SeriesSumsKernel(SeriesSizes sizes, const float* partial, int chunks, int group, double* sums) {
  const int64_t index = (int64_t{blockIdx.x} * kSumThreads + threadIdx.x) / group;
  const int lane = static_cast<int>(threadIdx.x) % group;
  const int64_t lag = index / sizes.heads;
  const int head_columns = sizes.columns / sizes.heads;
  const bool exists = lag < sizes.lags;
  double sum = 0;
  if (exists) {
    const int64_t first = lag * sizes.columns + index % sizes.heads * head_columns;
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const float* row = partial + chunk * (int64_t{sizes.lags} * sizes.columns) + first;
      for (int c = lane; c < head_columns; c += group) sum += double{row[c]};
    }
  }
  for (int mask = group / 2; mask > 0; mask /= 2) sum += __shfl_xor_sync(kAllLanes, sum, mask);
  if (exists && lane == 0) sums[index] += sum;
}

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_CONV_SERIES_SUMS_CUH_
