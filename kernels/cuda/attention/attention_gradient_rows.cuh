// The rows that attention and its gradients work on, f32 [B T, 3 d] in scratch memory: q | k | v
// with q and k rotated and q scaled, and later the gradients of these.
#ifndef HIPPODROME_KERNELS_CUDA_ATTENTION_ATTENTION_GRADIENT_ROWS_CUH_
#define HIPPODROME_KERNELS_CUDA_ATTENTION_ATTENTION_GRADIENT_ROWS_CUH_

#include "kernels/cuda/attention/rotary.cuh"

namespace hippodrome::cuda {

inline constexpr int kGradientRowThreads = 128;

struct GradientRows {
  Rotary rotary;
  int32_t heads;
  int32_t head_dim;
  int32_t tokens;  // of each sequence
  float scale;     // 1 / sqrt(head_dim)

  __device__ int columns() const { return 3 * heads * head_dim; }
};

// y = R x or R^T x, element j of a head, R the rotation at a position.
template <typename T>
__device__ inline float Rotated(const Rotary& rotary, int position, const T* x, int j,
                                bool transposed) {
  if (j >= 2 * rotary.half) return Widen(x[j]);
  const bool lower = j < rotary.half;
  const float2 turn = Turn(position, rotary.inv_freq[lower ? j : j - rotary.half]);
  const float other = Widen(x[lower ? j + rotary.half : j - rotary.half]);
  return Widen(x[j]) * turn.x + other * (lower != transposed ? -turn.y : turn.y);
}

// rows = (scale R q | R k | v). Blocks: rows.
template <typename T>
__global__ void __launch_bounds__(kGradientRowThreads)
    LoadGradientRowsKernel(GradientRows a, const T* qkv, int64_t stride, float* rows) {
  const int position = static_cast<int>(blockIdx.x % static_cast<unsigned>(a.tokens));
  const int d = a.heads * a.head_dim;
  qkv += blockIdx.x * stride;
  rows += int64_t{blockIdx.x} * a.columns();
  for (int i = static_cast<int>(threadIdx.x); i < a.columns(); i += kGradientRowThreads) {
    const int j = i % a.head_dim;
    if (i >= 2 * d) {
      rows[i] = Widen(qkv[i]);
    } else {
      const float x = Rotated(a.rotary, position, qkv + (i - j), j, /*transposed=*/false);
      rows[i] = i < d ? x * a.scale : x;
    }
  }
}

// From the gradients of these rows to those of qkv. Blocks: rows.
__global__ void __launch_bounds__(kGradientRowThreads)
    StoreGradientRowsKernel(GradientRows a, const float* rows, float* dqkv, int64_t stride,
                            bool add) {
  const int position = static_cast<int>(blockIdx.x % static_cast<unsigned>(a.tokens));
  const int d = a.heads * a.head_dim;
  dqkv += blockIdx.x * stride;
  rows += int64_t{blockIdx.x} * a.columns();
  for (int i = static_cast<int>(threadIdx.x); i < a.columns(); i += kGradientRowThreads) {
    const int j = i % a.head_dim;
    float x = rows[i];
    if (i < 2 * d) x = Rotated(a.rotary, position, rows + (i - j), j, /*transposed=*/true);
    if (i < d) x *= a.scale;
    dqkv[i] = add ? dqkv[i] + x : x;
  }
}

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_ATTENTION_ATTENTION_GRADIENT_ROWS_CUH_
