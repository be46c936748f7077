// Complex transforms of N = 2^k points by N / 16 neighbouring threads of a block, 16 points in the
// registers of each: "block FFT" of the H3 paper with radix-16 passes in registers and exchanges
// through shared memory between them.
//
// Forward is a decimation in frequency and leaves the order of FftFrequency(); Inverse is its
// mirror image and takes that order, so no pass reverses bits. Thread t of a transform holds
//   z[j] = point t + j N / 16               before Forward and after Inverse,
//   z[e] = position 16 t + e of the result  after Forward and before Inverse.
// A pass over blocks of n points stores to the places that the same thread loaded from, so an
// exchange costs one barrier, and one of a warp alone for n <= 512. All threads of a block must
// call these functions together.
#ifndef HIPPODROME_KERNELS_CUDA_CONV_FFT_BLOCK_CUH_
#define HIPPODROME_KERNELS_CUDA_CONV_FFT_BLOCK_CUH_

#include <type_traits>
#include <utility>

#include "kernels/cuda/base/device_code.cuh"
#include "kernels/cuda/conv/fft_tables.h"

namespace hippodrome::cuda {

// Discrete Fourier transforms of 2, 4, 8 and 16 complex numbers in the registers of one thread.

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

// Where point i is in shared memory: one number of padding after every 16 makes all exchanges free
// of bank conflicts.
__host__ __device__ constexpr int FftAddress(int i) { return i + i / kFftValues; }

// Complex numbers of shared memory that a transform needs.
template <int kPoints>
inline constexpr int kFftShared = FftAddress(kPoints);

template <int kPoints>
class BlockFft {
 public:
  static constexpr int kThreads = kPoints / kFftValues;

  // `thread` of this transform; `shared`: kFftShared<kPoints> numbers of this transform alone;
  // `twiddles`: FftTwiddles(kPoints).
  __device__ BlockFft(int thread, float2* shared, const float4* twiddles)
      : thread_(thread), shared_(shared), twiddles_(twiddles) {}

  __device__ void Forward(float2 (&z)[kFftValues]) const { ForwardPass<kPoints>(z, twiddles_); }
  // Not divided by N.
  __device__ void Inverse(float2 (&z)[kFftValues]) const {
    const BlockFft again(Forget(thread_), shared_, twiddles_);
    again.template InversePass<kPoints>(z, twiddles_);
  }

 private:
  // Threads of a block of n points, which is the distance of the points of one of them.
  template <int n>
  static constexpr int kColumns = n / kFftValues;

  template <int n>
  __device__ void ForwardPass(float2 (&z)[kFftValues], const float4* twiddles) const {
    if constexpr (n <= kFftValues) {
      DftOfNeighbours<n, false>(z);
    } else {
      constexpr int m = kColumns<n>;
      Dft16<false>(z);
      Twist<m, false>(z, twiddles);
      Store<n>(z);
      Wait<m>();
      Load<m>(z);
      ForwardPass<m>(z, twiddles + 3 * m);
    }
  }

  template <int n>
  __device__ void InversePass(float2 (&z)[kFftValues], const float4* twiddles) const {
    if constexpr (n <= kFftValues) {
      DftOfNeighbours<n, true>(z);
    } else {
      constexpr int m = kColumns<n>;
      InversePass<m>(z, twiddles + 3 * m);
      Store<m>(z);
      Wait<m>();
      Load<n>(z);
      Twist<m, true>(z, twiddles);
      Dft16<true>(z);
    }
  }

  // z[k] W^(k p), or its inverse, for the column p of this thread in a block of 16 m points.
  template <int m, bool kInverse>
  __device__ void Twist(float2 (&z)[kFftValues], const float4* twiddles) const {
    const float4* column = twiddles + thread_ % m;
    const float4 w12 = column[0];
    const float4 w34 = column[m];
    const float4 w8c = column[2 * m];
    // Products of two table entries: as precise as the transform itself.
    const float2 low[4] = {make_float2(1, 0), make_float2(w12.x, w12.y), make_float2(w12.z, w12.w),
                           make_float2(w34.x, w34.y)};
    const float2 high[4] = {make_float2(1, 0), make_float2(w34.z, w34.w), make_float2(w8c.x, w8c.y),
                            make_float2(w8c.z, w8c.w)};
    Unroll<kFftValues - 1>([&](auto i) {
      constexpr int k = i + 1;
      const float2 w = k < 4        ? low[k % 4]
                       : k % 4 == 0 ? high[k / 4]
                                    : ComplexMultiply(low[k % 4], high[k / 4]);
      z[k] = kInverse ? ComplexMultiplyConjugate(z[k], w) : ComplexMultiply(z[k], w);
    });
  }

  // The places of this thread's points in the pass over blocks of n points. The address of point
  // first + j m is the sum of the addresses of its parts, because first % 16 + j m % 16 < 16.
  template <int n>
  __device__ float2* First() const {
    constexpr int block = n < kFftValues ? kFftValues : n;
    constexpr int m = kColumns<block>;
    return shared_ + FftAddress(thread_ / m * block + thread_ % m);
  }
  template <int n>
  static constexpr int Distance(int j) {
    return n <= kFftValues ? j : FftAddress(j * kColumns<n>);
  }

  template <int n>
  __device__ void Store(const float2 (&z)[kFftValues]) const {
    float2* first = First<n>();
    Unroll<kFftValues>([&](auto j) { first[Distance<n>(j)] = z[j]; });
  }
  template <int n>
  __device__ void Load(float2 (&z)[kFftValues]) const {
    const float2* first = First<n>();
    Unroll<kFftValues>([&](auto j) { z[j] = first[Distance<n>(j)]; });
  }

  // For the `threads` neighbours that exchange points.
  template <int threads>
  static __device__ void Wait() {
    if constexpr (threads <= kWarp) {
      __syncwarp();
    } else {
      __syncthreads();
    }
  }

  int thread_;
  float2* shared_;
  const float4* twiddles_;
};

// z *= the spectrum of one kernel in memory, in the order of FftSpectrumOffset().
template <int kPoints>
__device__ inline void MultiplySpectrum(float2 (&z)[kFftValues], const float4* spectrum,
                                        int thread) {
  Unroll<kFftValues / 2>([&](auto i) {
    const float4 pair = spectrum[i * BlockFft<kPoints>::kThreads + thread];
    z[2 * i] = ComplexMultiply(z[2 * i], make_float2(pair.x, pair.y));
    z[2 * i + 1] = ComplexMultiply(z[2 * i + 1], make_float2(pair.z, pair.w));
  });
}

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_CONV_FFT_BLOCK_CUH_
