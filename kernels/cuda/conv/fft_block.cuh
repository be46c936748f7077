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

#include "kernels/cuda/conv/dft.cuh"
#include "kernels/cuda/conv/fft_tables.h"

namespace hippodrome::cuda {

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
