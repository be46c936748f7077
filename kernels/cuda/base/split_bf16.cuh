// Numbers as sums of bf16 terms, so that products of terms on the tensor cores make a product of
// numbers: two terms have 16 bits, three have 24.
#ifndef HIPPODROME_KERNELS_CUDA_BASE_SPLIT_BF16_CUH_
#define HIPPODROME_KERNELS_CUDA_BASE_SPLIT_BF16_CUH_

#include "kernels/cuda/base/mma.cuh"

namespace hippodrome::cuda {

// (low, high) as pairs of terms, the largest first.
template <int kTerms>
__device__ inline void SplitBF16(float low, float high, uint32_t (&terms)[kTerms]) {
#pragma unroll
  for (int i = 0; i < kTerms; ++i) {
    terms[i] = PackBF16(low, high);
    low -= __uint_as_float(terms[i] << 16);
    high -= __uint_as_float(terms[i] & 0xffff0000u);
  }
}

// d += a b, without the products of terms that are below the last one.
template <int kA, int kB>
__device__ inline void MultiplyTerms(float (&d)[4], const uint32_t (&a)[kA][4],
                                     const uint32_t (&b)[kB][2]) {
  constexpr int kTerms = kA > kB ? kA : kB;
#pragma unroll
  for (int i = 0; i < kA; ++i) {
#pragma unroll
    for (int j = 0; j < kB && i + j < kTerms; ++j) MmaBF16(d, a[i], b[j]);
  }
}

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_BASE_SPLIT_BF16_CUH_
