// Complex transforms of N = 2^k points by N / 16 neighbouring threads of a block, 16 points in the
// registers of each: "block FFT" of the H3 paper with radix-16 passes in registers and exchanges
// through shared memory between them.
//
// Forward leaves the order of FftFrequency(), Inverse takes it, so no pass reverses bits. Twiddle
// factors come before each pass in both: there they are part of its butterflies, of six
// multiply-adds each. Thread t of a transform holds
//   z[j] = point t + j N / 16               before Forward and after Inverse,
//   z[e] = position 16 t + e of the result  after Forward and before Inverse.
// A pass over blocks of n points stores to the places that the same thread loaded from, so an
// exchange costs one barrier, and one of a warp alone for n <= 512. All threads of a block must
// call these functions together.
//
// Numbers are float2 or HalfComplex, which is one of two transforms: half of the instructions and
// of the bytes of shared memory for each, with errors of about 3e-4 sqrt(log2 N) of the result's
// root mean square. It does not overflow where N times the largest part of the points, and of the
// result's, is at most 2^15: no sum on the way is larger than N times the largest of either end.
#ifndef HIPPODROME_KERNELS_CUDA_CONV_FFT_BLOCK_CUH_
#define HIPPODROME_KERNELS_CUDA_CONV_FFT_BLOCK_CUH_

#include <cuda_fp16.h>

#include <type_traits>
#include <utility>

#include "kernels/cuda/base/device_code.cuh"
#include "kernels/cuda/conv/fft_tables.h"

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

// Two complex numbers of binary16: the real parts, and the imaginary ones.
struct alignas(8) HalfComplex {
  __half2 x, y;
};
// The same number twice, of (re, im). Takes no instruction: those that use it choose their halves.
__device__ inline HalfComplex TwoTimes(__half2 number) {
  return {__low2half2(number), __high2half2(number)};
}
__device__ inline HalfComplex ComplexMultiplyAdd(HalfComplex a, HalfComplex b, HalfComplex c) {
  return {__hfma2(a.x, b.x, __hfma2(__hneg2(a.y), b.y, c.x)),
          __hfma2(a.x, b.y, __hfma2(a.y, b.x, c.y))};
}
__device__ inline HalfComplex ComplexMultiplyConjugate(HalfComplex a, HalfComplex b) {
  return {__hfma2(a.y, b.y, __hmul2(a.x, b.x)), __hfma2(__hneg2(a.x), b.y, __hmul2(a.y, b.x))};
}

__device__ inline float Negative(float x) { return -x; }
__device__ inline __half2 Negative(__half2 x) { return __hneg2(x); }

__device__ inline float2 ComplexAdd(float2 a, float2 b) {
  return make_float2(a.x + b.x, a.y + b.y);
}
__device__ inline HalfComplex ComplexAdd(HalfComplex a, HalfComplex b) {
  return {__hadd2(a.x, b.x), __hadd2(a.y, b.y)};
}
__device__ inline float2 ComplexSubtract(float2 a, float2 b) {
  return make_float2(a.x - b.x, a.y - b.y);
}
__device__ inline HalfComplex ComplexSubtract(HalfComplex a, HalfComplex b) {
  return {__hsub2(a.x, b.x), __hsub2(a.y, b.y)};
}

// w as a factor of numbers.
template <typename Number>
__device__ inline Number FactorOf(float2 w) {
  if constexpr (std::is_same_v<Number, HalfComplex>) {
    return TwoTimes(__floats2half2_rn(w.x, w.y));
  } else {
    return w;
  }
}

// exp(2 pi i j / 128), j in [0, 32]
__device__ inline float2 RootOf128(int j) {
  constexpr float kCosine[33] = {
      1.0f,          0.998795456f,  0.995184727f, 0.989176510f, 0.980785280f, 0.970031253f,
      0.956940336f,  0.941544065f,  0.923879533f, 0.903989293f, 0.881921264f, 0.857728610f,
      0.831469612f,  0.803207531f,  0.773010453f, 0.740951125f, 0.707106781f, 0.671558955f,
      0.634393284f,  0.595699304f,  0.555570233f, 0.514102744f, 0.471396737f, 0.427555093f,
      0.382683432f,  0.336889853f,  0.290284677f, 0.242980180f, 0.195090322f, 0.146730474f,
      0.0980171403f, 0.0490676743f, 0.0f};
  return make_float2(kCosine[j], kCosine[32 - j]);
}

// z (-i)^quarters, or its inverse; 0 or 1 quarters.
template <int quarters, bool kInverse, typename Number>
__device__ inline Number QuarterTurn(Number z) {
  static_assert(quarters == 0 || quarters == 1);
  if constexpr (quarters == 0) return z;
  if constexpr (kInverse) return {Negative(z.y), z.x};
  return {z.y, Negative(z.x)};
}

// w exp(-2 pi i m / 16), or its inverse, 0 <= m < 4.
template <int m, bool kInverse>
__device__ inline float2 Turn(float2 w) {
  static_assert(m >= 0 && m < 4);
  constexpr float s = kInverse ? -1.0f : 1.0f;
  if constexpr (m == 0) {
    return w;
  } else if constexpr (m == 2) {
    constexpr float kRootHalf = 0.707106781f;
    return make_float2(kRootHalf * (w.x + s * w.y), kRootHalf * (w.y - s * w.x));
  } else {
    const float2 root = RootOf128(8 * m);
    return make_float2(w.x * root.x + s * w.y * root.y, w.y * root.x - s * w.x * root.y);
  }
}

// a + b w, a - b w: the second as 2 a - (a + b w), six instructions in place of eight. By fmaf(),
// since compilers make a + a of 2 a, and two additions of the whole.
__device__ inline void Butterfly(float2& a, float2& b, float2 w) {
  const float2 sum = make_float2(a.x + b.x * w.x - b.y * w.y, a.y + b.y * w.x + b.x * w.y);
  b = make_float2(fmaf(2.0f, a.x, -sum.x), fmaf(2.0f, a.y, -sum.y));
  a = sum;
}
__device__ inline void Butterfly(HalfComplex& a, HalfComplex& b, HalfComplex w) {
  const HalfComplex sum = ComplexMultiplyAdd(w, b, a);
  const __half2 two = __floats2half2_rn(2.0f, 2.0f);
  b = {__hfma2(two, a.x, __hneg2(sum.x)), __hfma2(two, a.y, __hneg2(sum.y))};
  a = sum;
}

// Polynomials at the roots of x^n = w^n exp(-2 pi i turn / 16), of which half are those of
// x^(n/2) = root and half those of x^(n/2) = -root:
//   z_q <- sum_k z_k x_q^k, with + for kInverse, q in the order of reversed bits.
// powers[i] = w^(2^i); without kTwisted w = 1.
template <int n, bool kTwisted, bool kInverse, int turn = 0, typename Number>
__device__ inline void Evaluate(Number* z, const float2* powers) {
  if constexpr (n > 1) {
    constexpr int half = n / 2;
    constexpr int power = half == 8 ? 3 : half == 4 ? 2 : half == 2 ? 1 : 0;
    constexpr bool simple = !kTwisted && turn % 8 == 0;  // the root is 1 or -i
    constexpr int quarters = turn / 8;
    const Number root = QuarterTurn<quarters, kInverse>(FactorOf<Number>(
        Turn<turn / 2 % 4, kInverse>(kTwisted ? powers[power] : make_float2(1, 0))));
    Unroll<half>([&](auto j) {
      Number& a = z[j];
      Number& b = z[j + half];
      if constexpr (simple) {
        const Number turned = QuarterTurn<quarters, kInverse>(b);
        b = ComplexSubtract(a, turned);
        a = ComplexAdd(a, turned);
      } else {
        Butterfly(a, b, root);
      }
    });
    Evaluate<half, kTwisted, kInverse, turn / 2>(z, powers);
    Evaluate<half, kTwisted, kInverse, turn / 2 + 8>(z + half, powers);
  }
}

// `i` with its bits reversed, i < n.
constexpr int ReverseBits(int n, int i) {
  int reversed = 0;
  for (int bit = 1; bit < n; bit *= 2) reversed = 2 * reversed + (i & bit ? 1 : 0);
  return reversed;
}

// Discrete Fourier transforms of n = 2, 4, 8 or 16 complex numbers in the registers of one thread,
// in natural order: z_q <- sum_k z_k w^k exp(-2 pi i k q / n), or with +. `powers` as above.
template <int n, bool kTwisted, bool kInverse, typename Number>
__device__ inline void Dft(Number* z, const float2* powers) {
  Evaluate<n, kTwisted, kInverse>(z, powers);
  Unroll<n>([&](auto i) {
    constexpr int reversed = ReverseBits(n, i);
    if constexpr (i < reversed) {
      const Number swap = z[i];
      z[i] = z[reversed];
      z[reversed] = swap;
    }
  });
}

// Of each n neighbours.
template <int n, bool kInverse, typename Number>
__device__ inline void DftOfNeighbours(Number (&z)[kFftValues]) {
  Unroll<kFftValues / n>([&](auto i) { Dft<n, false, kInverse>(&z[n * i], nullptr); });
}

// w^2, as precise as the product of two numbers from a table.
__device__ inline float2 ComplexSquare(float2 w) {
  return make_float2(w.x * w.x - w.y * w.y, 2.0f * w.x * w.y);
}

// Dft() of 16. w: (w, w^4)
template <bool kInverse, typename Number>
__device__ inline void TwistedDft16(Number (&z)[kFftValues], float4 w) {
  constexpr float s = kInverse ? -1.0f : 1.0f;
  const float2 first = make_float2(w.x, s * w.y);
  const float2 fourth = make_float2(w.z, s * w.w);
  const float2 powers[4] = {first, ComplexSquare(first), fourth, ComplexSquare(fourth)};
  Dft<16, true, kInverse>(z, powers);
}

// Of each n < 16 neighbours: the i-th ones with w exp(-2 pi i / 16 n). w: (w, w^2) of the first.
template <int n, typename Number>
__device__ inline void TwistedDftOfNeighbours(Number (&z)[kFftValues], float4 w) {
  Unroll<kFftValues / n>([&](auto i) {
    const float2 once = RootOf128(8 / n * i);
    const float2 twice = RootOf128(n == 2 ? 0 : 16 / n * i);
    const float2 second = ComplexMultiplyConjugate(make_float2(w.z, w.w), twice);
    const float2 powers[3] = {ComplexMultiplyConjugate(make_float2(w.x, w.y), once), second,
                              ComplexSquare(second)};
    Dft<n, true, false>(&z[n * i], powers);
  });
}

// Where point i is in shared memory: one number of padding after every 16 makes all exchanges free
// of bank conflicts.
__host__ __device__ constexpr int FftAddress(int i) { return i + i / kFftValues; }

// Complex numbers of shared memory that a transform needs.
template <int kPoints>
inline constexpr int kFftShared = FftAddress(kPoints);

// For `threads` neighbours that exchange points.
template <int threads>
__device__ inline void WaitForNeighbours() {
  if constexpr (threads <= kWarp) {
    __syncwarp();
  } else {
    __syncthreads();
  }
}

template <int kPoints, typename Number = float2>
class BlockFft {
 public:
  static constexpr int kThreads = kPoints / kFftValues;

  // `thread` of this transform; `shared`: kFftShared<kPoints> numbers of this transform alone;
  // `twiddles`: FftTwiddles(kPoints).
  __device__ BlockFft(int thread, Number* shared, const float4* twiddles)
      : thread_(thread), shared_(shared), twiddles_(twiddles) {}

  __device__ void Forward(Number (&z)[kFftValues]) const {
    if constexpr (kPoints <= kFftValues) {
      DftOfNeighbours<kPoints, false>(z);
    } else {
      Dft<kFftValues, false, false>(z, nullptr);
      Exchange<kPoints, kColumns<kPoints>>(z);
      ForwardPass<kColumns<kPoints>>(z, twiddles_ + FftInverseTwiddles(kPoints));
    }
  }
  // Not divided by N.
  __device__ void Inverse(Number (&z)[kFftValues]) const {
    const BlockFft again(Forget(thread_), shared_, twiddles_);
    again.template InversePass<kPoints>(z, twiddles_);
  }

 private:
  // Threads of a block of n points, which is the distance of the points of one of them.
  template <int n>
  static constexpr int kColumns = n / kFftValues;

  // Blocks of n < N points are polynomials modulo x^n - w^16, each with its own w.
  template <int n>
  __device__ void ForwardPass(Number (&z)[kFftValues], const float4* twiddles) const {
    if constexpr (n < kFftValues) {
      TwistedDftOfNeighbours<n>(z, twiddles[thread_]);
    } else {
      TwistedDft16<false>(z, twiddles[thread_ / kColumns<n>]);
      if constexpr (n > kFftValues) {
        Exchange<n, kColumns<n>>(z);
        ForwardPass<kColumns<n>>(z, twiddles + kPoints / n);
      }
    }
  }

  // Here w is that of the column.
  template <int n>
  __device__ void InversePass(Number (&z)[kFftValues], const float4* twiddles) const {
    if constexpr (n <= kFftValues) {
      DftOfNeighbours<n, true>(z);
    } else {
      constexpr int m = kColumns<n>;
      InversePass<m>(z, twiddles + m);
      Exchange<m, n>(z);
      TwistedDft16<true>(z, twiddles[thread_ % m]);
    }
  }

  // From the pass over blocks of `from` points to that over blocks of `to`.
  template <int from, int to>
  __device__ void Exchange(Number (&z)[kFftValues]) const {
    Store<from>(z);
    WaitForNeighbours<(from > to ? to : from)>();
    Load<to>(z);
  }

  // The places of this thread's points in the pass over blocks of n points. The address of point
  // first + j m is the sum of the addresses of its parts, because first % 16 + j m % 16 < 16.
  template <int n>
  __device__ Number* First() const {
    constexpr int block = n < kFftValues ? kFftValues : n;
    constexpr int m = kColumns<block>;
    return shared_ + FftAddress(thread_ / m * block + thread_ % m);
  }
  template <int n>
  static constexpr int Distance(int j) {
    return n <= kFftValues ? j : FftAddress(j * kColumns<n>);
  }

  template <int n>
  __device__ void Store(const Number (&z)[kFftValues]) const {
    Number* first = First<n>();
    Unroll<kFftValues>([&](auto j) { first[Distance<n>(j)] = z[j]; });
  }
  template <int n>
  __device__ void Load(Number (&z)[kFftValues]) const {
    const Number* first = First<n>();
    Unroll<kFftValues>([&](auto j) { z[j] = first[Distance<n>(j)]; });
  }

  int thread_;
  Number* shared_;
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
