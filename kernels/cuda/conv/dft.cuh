// Discrete Fourier transforms of 2, 4, 8 and 16 complex numbers in the registers of one thread.
#ifndef HIPPODROME_KERNELS_CUDA_CONV_DFT_CUH_
#define HIPPODROME_KERNELS_CUDA_CONV_DFT_CUH_

#include <type_traits>
#include <utility>

#include "kernels/cuda/base/device_code.cuh"

namespace hippodrome::cuda {

// Calls body(integral_constant<int, i>) for i = 0 .. count - 1: indices into registers must be
// constants.
template <int count, typename Body>
__device__ inline void Unroll(const Body& body) {
  [&]<int... i>(std::integer_sequence<int, i...>) {
    (body(std::integral_constant<int, i>()), ...);
  }(std::make_integer_sequence<int, count>());
}

// a conj(b)
__device__ inline float2 ComplexMultiplyConjugate(float2 a, float2 b) {
  return make_float2(a.x * b.x + a.y * b.y, a.y * b.x - a.x * b.y);
}
__device__ inline float2 ComplexAdd(float2 a, float2 b) {
  return make_float2(a.x + b.x, a.y + b.y);
}
__device__ inline float2 ComplexSubtract(float2 a, float2 b) {
  return make_float2(a.x - b.x, a.y - b.y);
}

// z exp(-2 pi i m / 16), or its inverse.
template <int m, bool kInverse>
__device__ inline float2 Turn(float2 z) {
  constexpr float kCosine = 0.923879533f;  // of pi / 8
  constexpr float kSine = 0.382683432f;
  constexpr float kRootHalf = 0.707106781f;
  constexpr float s = kInverse ? -1.0f : 1.0f;
  static_assert(m == 0 || m == 1 || m == 2 || m == 3 || m == 4 || m == 6 || m == 9);
  if constexpr (m == 0) {
    return z;
  } else if constexpr (m == 4) {
    return make_float2(s * z.y, -s * z.x);
  } else if constexpr (m == 2) {
    return make_float2(kRootHalf * (z.x + s * z.y), kRootHalf * (z.y - s * z.x));
  } else if constexpr (m == 6) {
    return make_float2(kRootHalf * (s * z.y - z.x), -kRootHalf * (z.y + s * z.x));
  } else {
    constexpr float x = m == 1 ? kCosine : m == 3 ? kSine : -kCosine;
    constexpr float y = s * (m == 1 ? -kSine : m == 3 ? -kCosine : kSine);
    return make_float2(z.x * x - z.y * y, z.x * y + z.y * x);
  }
}

__device__ inline void Dft2(float2& a, float2& b) {
  const float2 sum = ComplexAdd(a, b);
  b = ComplexSubtract(a, b);
  a = sum;
}

// In natural order, as are those below: z_k <- sum_j z_j exp(-2 pi i j k / n), or with +.
template <bool kInverse>
__device__ inline void Dft4(float2& z0, float2& z1, float2& z2, float2& z3) {
  Dft2(z0, z2);
  Dft2(z1, z3);
  Dft2(z0, z1);
  z3 = Turn<4, kInverse>(z3);
  Dft2(z2, z3);
  const float2 swap = z1;
  z1 = z2;
  z2 = swap;
}

template <bool kInverse>
__device__ inline void Dft8(float2* z) {
  Unroll<4>([&](auto j) {
    Dft2(z[j], z[j + 4]);
    z[j + 4] = Turn<2 * j, kInverse>(z[j + 4]);
  });
  Dft4<kInverse>(z[0], z[1], z[2], z[3]);
  Dft4<kInverse>(z[4], z[5], z[6], z[7]);
  const float2 even[4] = {z[0], z[1], z[2], z[3]};
  Unroll<4>([&](auto k) {
    const float2 odd = z[k + 4];
    z[2 * k] = even[k];
    z[2 * k + 1] = odd;
  });
}

template <bool kInverse>
__device__ inline void Dft16(float2 (&z)[16]) {
  Unroll<4>([&](auto j) { Dft4<kInverse>(z[j], z[j + 4], z[j + 8], z[j + 12]); });
  Unroll<16>([&](auto i) { z[i] = Turn<(i % 4) * (i / 4), kInverse>(z[i]); });
  Unroll<4>([&](auto k) { Dft4<kInverse>(z[4 * k], z[4 * k + 1], z[4 * k + 2], z[4 * k + 3]); });
  Unroll<16>([&](auto i) {
    constexpr int transposed = i % 4 * 4 + i / 4;
    if constexpr (i < transposed) {
      const float2 swap = z[i];
      z[i] = z[transposed];
      z[transposed] = swap;
    }
  });
}

// Of each n neighbours.
template <int n, bool kInverse>
__device__ inline void DftOfNeighbours(float2 (&z)[16]) {
  if constexpr (n == 16) {
    Dft16<kInverse>(z);
  } else {
    Unroll<16 / n>([&](auto i) {
      if constexpr (n == 8) Dft8<kInverse>(&z[8 * i]);
      if constexpr (n == 4) Dft4<kInverse>(z[4 * i], z[4 * i + 1], z[4 * i + 2], z[4 * i + 3]);
      if constexpr (n == 2) Dft2(z[2 * i], z[2 * i + 1]);
    });
  }
}

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_CONV_DFT_CUH_
