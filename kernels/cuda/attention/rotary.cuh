// Rotary position embedding in the GPT-NeoX layout, for rows of one head.
#ifndef HIPPODROME_KERNELS_CUDA_ATTENTION_ROTARY_CUH_
#define HIPPODROME_KERNELS_CUDA_ATTENTION_ROTARY_CUH_

#include "kernels/cuda/attention/head_row.cuh"

namespace hippodrome::cuda {

// Which elements of a head are rotated: j with half + j, for j < half.
struct Rotary {
  const float* inv_freq;  // [half]
  int half;               // 0: none
};

// (cos, sin) of position * inv_freq, for angles up to 2^20: absolute error below 3e-7. The product
// is kept in two floats and reduced by multiples of pi / 2 exactly.
__device__ inline float2 Turn(int64_t position, float inv_freq) {
  const float p = static_cast<float>(position);
  const float angle = p * inv_freq;
  const float rest = fmaf(p, inv_freq, -angle);
  const float quarters = rintf(angle * 0.636619772f);
  float x = fmaf(-quarters, 1.57079637f, angle);
  x = fmaf(-quarters, -4.37113883e-8f, x) + rest;
  const float x2 = x * x;
  const float sine =
      fmaf(x * x2, fmaf(x2, fmaf(x2, -1.9515295891e-4f, 8.3321608736e-3f), -1.6666654611e-1f), x);
  const float cosine =
      fmaf(x2 * x2,
           fmaf(x2, fmaf(x2, 2.443315711809948e-5f, -1.388731625493765e-3f), 4.166664568298827e-2f),
           fmaf(x2, -0.5f, 1.0f));
  const int quadrant = static_cast<int>(quarters) & 3;
  const float c = (quadrant & 1) != 0 ? sine : cosine;
  const float s = (quadrant & 1) != 0 ? cosine : sine;
  return make_float2(quadrant == 1 || quadrant == 2 ? -c : c, quadrant >= 2 ? -s : s);
}

// x = elements [j, j + kCount) of the row `row` at `position`, rotated:
// y[i] = x[i] cos_i - x[half + i] sin_i, y[half + i] = x[i] sin_i + x[half + i] cos_i for i < half.
// REQUIRES: kCount divides j and half; alignment as LoadElements() asks.
template <int kCount, typename T>
__device__ inline void LoadRotated(const T* row, int j, const Rotary& rotary, int64_t position,
                                   float (&x)[kCount]) {
  LoadElements<kCount>(row + j, x);
  if (j >= 2 * rotary.half) return;
  const bool lower = j < rotary.half;
  const int partner = lower ? j + rotary.half : j - rotary.half;
  float other[kCount];
  LoadElements<kCount>(row + partner, other);
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const float2 turn = Turn(position, rotary.inv_freq[(lower ? j : partner) + i]);
    x[i] = x[i] * turn.x + other[i] * (lower ? -turn.y : turn.y);
  }
}

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_ATTENTION_ROTARY_CUH_
