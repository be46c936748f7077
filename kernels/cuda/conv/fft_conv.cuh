// The fused gated convolution: rows of k, v and q are read once, y is written once, and everything
// between stays in the registers and the shared memory of one block.
//
// Of a pair of rows of 4096 bf16 points, a block of 256 threads moves 64 KB to and from device
// memory, 32 KB from the caches (the spectrum; blocks of one channel are neighbours), 256 KB
// through shared memory in four exchanges, and does about 110 flops per point: at 1.8 GHz, the
// shared memory and the arithmetic of a multiprocessor need each about as long as its part of the
// device memory. Spectra are read again by each block: 64 registers per thread hold the points
// alone, but leave room for 1024 threads, whose loads and sums overlap.
#ifndef HIPPODROME_KERNELS_CUDA_CONV_FFT_CONV_CUH_
#define HIPPODROME_KERNELS_CUDA_CONV_FFT_CONV_CUH_

#include "kernels/cuda/conv/fft_block.cuh"

namespace hippodrome::cuda {

// A GatedConvCall for a kernel.
template <typename T>
struct GatedConvRows {
  const T* k;
  const T* v;
  const T* q;
  T* y;
  const float4* spectra;
  const float4* twiddles;
  int32_t sequences;
  int32_t channels;
};

// Threads of a block: at least 64, so several transforms if they are short.
template <int kPoints>
inline constexpr int kConvThreads = kPoints / kFftValues < 64 ? 64 : kPoints / kFftValues;
// Blocks on a multiprocessor: 1024 threads with 64 registers each, where that is enough.
template <int kPoints>
inline constexpr int kConvBlocks = (kPoints == 16 ? 768 : 1024) / kConvThreads<kPoints>;
template <int kPoints>
inline constexpr int kConvGroups = kConvThreads<kPoints> / (kPoints / kFftValues);

// What one group of threads transforms at once, for the channel blockIdx.y: two sequences as
// x_1 + i x_2. The kernel is real, so y_1 + i y_2 comes out.
template <typename T, int kPoints>
class SequencePair {
 public:
  // Numbers of a channel in the spectra.
  static constexpr int kSpectrum = kPoints;

  __device__ SequencePair(const GatedConvRows<T>& rows, int pair, int thread)
      : rows_(rows), first_sequence_(2 * pair), thread_(thread) {}

  __device__ void Load(float2 (&z)[kFftValues]) const {
    const int64_t first = Start(0);
    const int64_t second = Start(1);
    Unroll<kFftValues>([&](auto j) {
      z[j].x = Active(0) ? Product(first + j * kThreads) : 0.0f;
      z[j].y = Active(1) ? Product(second + j * kThreads) : 0.0f;
    });
  }

  __device__ void Filter(float2 (&z)[kFftValues], float2*) const {
    MultiplySpectrum<kPoints>(z, rows_.spectra + static_cast<int64_t>(blockIdx.y) * (kSpectrum / 2),
                              thread_);
  }

  __device__ void Store(const float2 (&z)[kFftValues]) const {
    const int64_t first = Start(0);
    const int64_t second = Start(1);
    Unroll<kFftValues>([&](auto j) {
      if (Active(0)) Gate(first + j * kThreads, z[j].x);
      if (Active(1)) Gate(second + j * kThreads, z[j].y);
    });
  }

 private:
  static constexpr int kThreads = kPoints / kFftValues;

  __device__ bool Active(int i) const { return first_sequence_ + i < rows_.sequences; }
  // Of this thread's first point of one of the two sequences.
  __device__ int64_t Start(int i) const {
    const int64_t row =
        static_cast<int64_t>(Forget(first_sequence_) + i) * rows_.channels + blockIdx.y;
    return row * kPoints + Forget(thread_);
  }
  __device__ float Product(int64_t i) const { return Widen(rows_.k[i]) * Widen(rows_.v[i]); }
  __device__ void Gate(int64_t i, float y) const {
    rows_.y[i] = FromFloat<T>(y * Widen(rows_.q[i]));
  }

  const GatedConvRows<T>& rows_;
  int first_sequence_;
  int thread_;
};

// The same for one sequence of 2 N real points, as z_t = x_2t + i x_2t+1: its spectrum is
// Y_f = A_f Z_f + B_f conj(Z_-f), see HalvedSpectrum() in fft_conv.cu.
template <typename T, int kPoints>
class HalvedSequence {
 public:
  static constexpr int kSpectrum = 2 * kPoints;  // A, then B

  __device__ HalvedSequence(const GatedConvRows<T>& rows, int sequence, int thread)
      : rows_(rows), sequence_(sequence), thread_(thread) {}

  __device__ void Load(float2 (&z)[kFftValues]) const {
    const Two* k = Row(rows_.k);
    const Two* v = Row(rows_.v);
    Unroll<kFftValues>([&](auto j) {
      const Two a = k[j * kThreads];
      const Two b = v[j * kThreads];
      z[j] = make_float2(Widen(a.x) * Widen(b.x), Widen(a.y) * Widen(b.y));
    });
  }

  __device__ void Filter(float2 (&z)[kFftValues], float2* shared) const {
    float2* own = shared + FftAddress(kFftValues * thread_);
    Unroll<kFftValues>([&](auto e) { own[e] = z[e]; });
    __syncthreads();
    const float4* a = rows_.spectra + static_cast<int64_t>(blockIdx.y) * (kSpectrum / 2) + thread_;
    const float4* b = a + kPoints / 2;
    Unroll<kFftValues / 2>([&](auto i) {
      const float4 s = a[i * kThreads];
      const float4 m = b[i * kThreads];
      Mix(z[2 * i], make_float2(s.x, s.y), make_float2(m.x, m.y), Mirrored(shared, 2 * i));
      Mix(z[2 * i + 1], make_float2(s.z, s.w), make_float2(m.z, m.w), Mirrored(shared, 2 * i + 1));
    });
    __syncthreads();
  }

  __device__ void Store(const float2 (&z)[kFftValues]) const {
    const Two* q = Row(rows_.q);
    auto* y = const_cast<Two*>(Row(rows_.y));
    Unroll<kFftValues>([&](auto j) {
      const Two gate = q[j * kThreads];
      y[j * kThreads] = {FromFloat<T>(z[j].x * Widen(gate.x)),
                         FromFloat<T>(z[j].y * Widen(gate.y))};
    });
  }

 private:
  static constexpr int kThreads = kPoints / kFftValues;
  struct alignas(2 * sizeof(T)) Two {
    T x, y;
  };

  __device__ const Two* Row(const T* tensor) const {
    const int64_t row = static_cast<int64_t>(Forget(sequence_)) * rows_.channels + blockIdx.y;
    return reinterpret_cast<const Two*>(tensor) + row * kPoints + thread_;
  }
  __device__ float2 Mirrored(const float2* shared, int e) const {
    const int last = FftAddress(FftMirror(kPoints, kFftValues * thread_));
    const int general = FftAddress(FftMirror(kPoints, kFftValues * thread_ + e));
    return shared[thread_ < 4 ? general : last - e];
  }
  // z <- a z + b conj(mirrored)
  static __device__ void Mix(float2& z, float2 a, float2 b, float2 mirrored) {
    z = ComplexMultiplyAdd(a, z, ComplexMultiplyConjugate(b, mirrored));
  }

  const GatedConvRows<T>& rows_;
  int sequence_;
  int thread_;
};

// Transforms of kPoints points. Sequences: SequencePair or HalvedSequence.
template <template <typename, int> typename Sequences, typename T, int kPoints>
__global__ void __launch_bounds__(kConvThreads<kPoints>, kConvBlocks<kPoints>)
    GatedConvKernel(GatedConvRows<T> rows) {
  using Fft = BlockFft<kPoints>;
  const int group = threadIdx.x / Fft::kThreads;
  const int thread = threadIdx.x % Fft::kThreads;
  float2* shared = reinterpret_cast<float2*>(SharedMemory()) + group * kFftShared<kPoints>;
  const Fft fft(thread, shared, rows.twiddles);
  const Sequences<T, kPoints> sequences(rows, blockIdx.x * kConvGroups<kPoints> + group, thread);
  float2 z[kFftValues];
  sequences.Load(z);
  fft.Forward(z);
  sequences.Filter(z, shared);
  fft.Inverse(z);
  sequences.Store(z);
}

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_CONV_FFT_CONV_CUH_
