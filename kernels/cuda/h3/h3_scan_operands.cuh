// Numbers of the scan as operands of the tensor cores: sums of 16-bit terms, so that products of
// terms make a product of numbers.
//   bf16 activations   u, states and their matrices are one binary16 (11 bits, as tf32 has), scaled
//                      by powers of two to stay in its range; k is one bf16, exactly, and a tap
//                      two.
//   f32 activations    everything is three bf16 (24 bits), and needs no scaling.
#ifndef HIPPODROME_KERNELS_CUDA_H3_H3_SCAN_OPERANDS_CUH_
#define HIPPODROME_KERNELS_CUDA_H3_H3_SCAN_OPERANDS_CUH_

#include "kernels/cuda/base/split_bf16.cuh"

namespace hippodrome::cuda {

template <typename T>
struct ScanTerms;
template <>
struct ScanTerms<BF16> {
  static constexpr int kStates = 1;  // u, states, and the matrices between them
  static constexpr int kInputs = 1;  // k
  static constexpr int kTaps = 2;
};
template <>
struct ScanTerms<float> {
  static constexpr int kStates = 3;
  static constexpr int kInputs = 3;
  static constexpr int kTaps = 3;
};

__device__ inline void SplitState(float low, float high, uint32_t (&terms)[1]) {
  terms[0] = PackF16(low, high);
}
__device__ inline void SplitState(float low, float high, uint32_t (&terms)[3]) {
  SplitBF16(low, high, terms);
}

// Four adjacent inputs from shared memory, as two pairs.
__device__ inline void LoadInputs(const BF16* from, uint32_t (&pairs)[2][1]) {
  const uint2 words = *reinterpret_cast<const uint2*>(from);
  pairs[0][0] = words.x;
  pairs[1][0] = words.y;
}
__device__ inline void LoadInputs(const float* from, uint32_t (&pairs)[2][3]) {
  const float4 x = *reinterpret_cast<const float4*>(from);
  SplitBF16(x.x, x.y, pairs[0]);
  SplitBF16(x.z, x.w, pairs[1]);
}

__device__ inline void MultiplyStates(float (&d)[4], const uint32_t (&a)[1][4],
                                      const uint32_t (&b)[1][2]) {
  MmaF16(d, a[0], b[0]);
}
__device__ inline void MultiplyStates(float (&d)[4], const uint32_t (&a)[3][4],
                                      const uint32_t (&b)[3][2]) {
  MultiplyTerms(d, a, b);
}

// The power of two that brings x >= 0 into [1, 2), if that is neither huge nor tiny.
__device__ inline float ScaleToOne(float x) {
  const float bounded = fminf(fmaxf(x, 0x1p-100f), 0x1p100f);
  return __uint_as_float(0x7f000000u - (__float_as_uint(bounded) & 0x7f800000u));
}
// 1 / scale of a power of two.
__device__ inline float InverseOf(float scale) {
  return __uint_as_float(0x7f000000u - __float_as_uint(scale));
}
// The scale of numbers up to `largest` in terms of type T's scan.
template <typename T>
__device__ inline float StateScale(float largest) {
  return ScanTerms<T>::kStates == 1 ? ScaleToOne(largest) : 1.0f;
}

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_H3_H3_SCAN_OPERANDS_CUH_
