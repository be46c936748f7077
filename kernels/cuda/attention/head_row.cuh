// Loads and stores of adjacent elements of a head's row.
#ifndef HIPPODROME_KERNELS_CUDA_ATTENTION_HEAD_ROW_CUH_
#define HIPPODROME_KERNELS_CUDA_ATTENTION_HEAD_ROW_CUH_

#include "kernels/cuda/base/mma.cuh"

namespace hippodrome::cuda {

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

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_ATTENTION_HEAD_ROW_CUH_
