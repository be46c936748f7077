// The recurrence that linear attention and its gradients are made of: for each token t,
//   M = M + x_t y_t^T;  out_t = w_t^T M
// A thread has a column of M, which goes through registers row by row for some tokens together.
#ifndef HIPPODROME_KERNELS_CUDA_ATTENTION_OUTER_SCAN_CUH_
#define HIPPODROME_KERNELS_CUDA_ATTENTION_OUTER_SCAN_CUH_

#include "kernels/cuda/base/device_code.cuh"

namespace hippodrome::cuda {

inline constexpr int kOuterThreads = 128;
inline constexpr int kOuterWarps = kOuterThreads / kWarp;
inline constexpr int kOuterTokens = 16;  // of a sequence, together
inline constexpr int kOuterRows = 32;    // of x and w, in shared memory together

// elu(x) + 1
__device__ inline float LinearAttentionFeature(float x) { return x > 0.0f ? x + 1.0f : expf(x); }

template <int kTokens>
struct OuterTile {
  float x[kOuterRows][kTokens];
  float w[kOuterRows][kTokens];
};

// Some tokens. `column`: the thread's of M, or null for a thread that has none; its rows are
// `stride` floats apart. x(i, row), w(i, row): of token i. Every thread must come.
template <int kTokens, class X, class W>
__device__ void ScanOuter(OuterTile<kTokens>& tile, int rows, const X& x, const W& w,
                          const float (&y)[kTokens], float* column, int64_t stride,
                          float (&out)[kTokens]) {
#pragma unroll
  for (int i = 0; i < kTokens; ++i) out[i] = 0.0f;
  for (int first = 0; first < rows; first += kOuterRows) {
    const int count = min(kOuterRows, rows - first);
    __syncthreads();  // the rows before are read
    for (int k = static_cast<int>(threadIdx.x); k < kOuterRows * kTokens; k += kOuterThreads) {
      const int row = k % kOuterRows;
      if (row >= count) continue;
      tile.x[row][k / kOuterRows] = x(k / kOuterRows, first + row);
      tile.w[row][k / kOuterRows] = w(k / kOuterRows, first + row);
    }
    __syncthreads();
    if (column == nullptr) continue;
    for (int row = 0; row < count; ++row) {
      float& place = column[(first + row) * stride];
      float m = place;
#pragma unroll
      for (int i = 0; i < kTokens; ++i) {
        m = fmaf(tile.x[row][i], y[i], m);
        out[i] = fmaf(tile.w[row][i], m, out[i]);
      }
      place = m;
    }
  }
}

// sums[i] over the block, for each i; every thread gets all. Every thread must come.
template <int kCount>
__device__ void SumOverBlock(float (&sums)[kCount], float (&partial)[kOuterWarps][kCount]) {
  __syncthreads();  // what the call before left is read
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    sums[i] = WarpSum(sums[i]);
    if (threadIdx.x % kWarp == 0) partial[threadIdx.x / kWarp][i] = sums[i];
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    sums[i] = 0.0f;
    for (int warp = 0; warp < kOuterWarps; ++warp) sums[i] += partial[warp][i];
  }
}

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_ATTENTION_OUTER_SCAN_CUH_
