// Rotary position embedding in the GPT-NeoX layout, for rows of one head.
#ifndef HIPPODROME_KERNELS_CUDA_ATTENTION_ROTARY_CUH_
#define HIPPODROME_KERNELS_CUDA_ATTENTION_ROTARY_CUH_

#include "kernels/cuda/base/mma.cuh"

namespace hippodrome::cuda {

// Loads and stores of adjacent elements of a head's row.

// Elements of type T in 16 bytes.
template <typename T>
inline constexpr int kVector = 16 / static_cast<int>(sizeof(T));

// kCount elements as floats: one, or 16 bytes at an address aligned to 16.
template <int kCount>
__device__ inline void LoadElements(const float* from, float (&x)[kCount]) {
  static_assert(kCount == 1 || kCount == kVector<float>);
  if constexpr (kCount == 1) {
    x[0] = *from;
  } else {
    const float4 v = *reinterpret_cast<const float4*>(from);
    x[0] = v.x;
    x[1] = v.y;
    x[2] = v.z;
    x[3] = v.w;
  }
}
template <int kCount>
__device__ inline void LoadElements(const BF16* from, float (&x)[kCount]) {
  static_assert(kCount == 1 || kCount == kVector<BF16>);
  if constexpr (kCount == 1) {
    x[0] = Widen(*from);
  } else {
    const uint4 v = *reinterpret_cast<const uint4*>(from);
    const uint32_t pairs[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      x[2 * i] = __uint_as_float(pairs[i] << 16);
      x[2 * i + 1] = __uint_as_float(pairs[i] & 0xffff0000u);
    }
  }
}

// The other way round, rounded to nearest even.
template <int kCount>
__device__ inline void StoreElements(const float (&x)[kCount], float* to) {
  static_assert(kCount == 1 || kCount == kVector<float>);
  if constexpr (kCount == 1) {
    *to = x[0];
  } else {
    *reinterpret_cast<float4*>(to) = make_float4(x[0], x[1], x[2], x[3]);
  }
}
template <int kCount>
__device__ inline void StoreElements(const float (&x)[kCount], BF16* to) {
  static_assert(kCount == 1 || kCount == kVector<BF16>);
  if constexpr (kCount == 1) {
    *to = RoundToBF16(x[0]);
  } else {
    *reinterpret_cast<uint4*>(to) = make_uint4(PackBF16(x[0], x[1]), PackBF16(x[2], x[3]),
                                               PackBF16(x[4], x[5]), PackBF16(x[6], x[7]));
  }
}

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
