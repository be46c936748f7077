// The fused gated convolution: rows of k, v and q are read once, y is written once, and everything
// between stays in the registers and the shared memory of one block.
//
// Of a pair of rows of 4096 bf16 points, a block of 256 threads moves 64 KB to and from device
// memory, 16 KB from the caches (the spectrum; blocks of one channel are neighbours), 256 KB
// through shared memory in four exchanges, and takes about 60 instructions per point: at 1.8 GHz,
// the shared memory and the arithmetic of a multiprocessor need each nearly as long as its part of
// the device memory. Spectra are read again by each block: 64 registers per thread hold the points
// alone, but leave room for 1024 threads, whose loads and sums overlap.
#include "kernels/cuda/conv/gated_conv.h"

#include <cuda_fp16.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <complex>
#include <cstring>
#include <numbers>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/base/row_vector.cuh"
#include "kernels/cuda/conv/fft_block.cuh"

namespace hippodrome::cuda {
namespace {

// A GatedConvCall for a kernel.
template <typename T>
struct GatedConvRows {
  const T* k;
  const T* v;
  const T* q;
  T* y;
  const float4* spectra;
  const float* scales;  // of the channels' spectra, beside kBF16
  const float4* twiddles;
  int32_t sequences;
  int32_t channels;
};

// Complex numbers of a spectrum in 16 bytes: of f32 or, beside rows of bf16, of f16, which has 11
// bits where bf16 has 8, with the largest one scaled to less than 1.
template <typename T>
constexpr int kNumbersTogether = std::is_same_v<T, BF16> ? 4 : 2;

// Number i of such 16 bytes.
template <typename T>
__device__ inline float2 SpectrumNumber(const float4& bytes, int i) {
  if constexpr (std::is_same_v<T, BF16>) {
    const float word = i == 0 ? bytes.x : i == 1 ? bytes.y : i == 2 ? bytes.z : bytes.w;
    const unsigned bits = __float_as_uint(word);
    __half2 pair;
    memcpy(&pair, &bits, sizeof(pair));
    return __half22float2(pair);
  } else {
    return i == 0 ? make_float2(bytes.x, bytes.y) : make_float2(bytes.z, bytes.w);
  }
}

// A thread's part `i` of the spectrum of `kPoints` numbers that starts at `spectrum`.
template <int kPoints>
__device__ inline float4 SpectrumPart(const float4* spectrum, int i, int thread) {
  return spectrum[i * (kPoints / kFftValues) + thread];
}

// What results are still to be multiplied by.
template <typename T>
__device__ inline float SpectrumScale(const GatedConvRows<T>& rows) {
  if constexpr (std::is_same_v<T, BF16>) return rows.scales[blockIdx.y];
  return 1.0f;
}

// Threads of a block: at least 64, so several transforms if they are short.
template <int kPoints>
constexpr int kConvThreads = kPoints / kFftValues < 64 ? 64 : kPoints / kFftValues;
// Blocks on a multiprocessor: 1024 threads with 64 registers each, where that is enough.
template <int kPoints>
constexpr int kConvBlocks = (kPoints == 16 ? 768 : 1024) / kConvThreads<kPoints>;
template <int kPoints>
constexpr int kConvGroups = kConvThreads<kPoints> / (kPoints / kFftValues);

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
    constexpr int together = kNumbersTogether<T>;
    const float4* spectrum =
        rows_.spectra + static_cast<int64_t>(blockIdx.y) * (kSpectrum / together);
    Unroll<kFftValues / together>([&](auto i) {
      const float4 part = SpectrumPart<kPoints>(spectrum, i, thread_);
      Unroll<together>([&](auto j) {
        float2& number = z[together * i + j];
        number = ComplexMultiply(number, SpectrumNumber<T>(part, j));
      });
    });
  }

  __device__ void Store(const float2 (&z)[kFftValues]) const {
    const int64_t first = Start(0);
    const int64_t second = Start(1);
    const float scale = SpectrumScale(rows_);
    Unroll<kFftValues>([&](auto j) {
      if (Active(0)) Gate(first + j * kThreads, z[j].x * scale);
      if (Active(1)) Gate(second + j * kThreads, z[j].y * scale);
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
// Y_f = A_f Z_f + B_f conj(Z_-f), see Factors().
template <typename T, int kPoints>
class HalvedSequence {
 public:
  static constexpr int kSpectrum = 2 * kPoints;  // A, then B

  __device__ HalvedSequence(const GatedConvRows<T>& rows, int sequence, int thread)
      : rows_(rows), sequence_(sequence), thread_(thread) {}

  __device__ void Load(float2 (&z)[kFftValues]) const {
    const T* k = Row(rows_.k);
    const T* v = Row(rows_.v);
    Unroll<kFftValues>([&](auto j) {
      const float2 a = LoadTwo(k + 2 * j * kThreads);
      const float2 b = LoadTwo(v + 2 * j * kThreads);
      z[j] = make_float2(a.x * b.x, a.y * b.y);
    });
  }

  __device__ void Filter(float2 (&z)[kFftValues], float2* shared) const {
    float2* own = shared + FftAddress(kFftValues * thread_);
    Unroll<kFftValues>([&](auto e) { own[e] = z[e]; });
    __syncthreads();
    const Mirror mirror(thread_);
    constexpr int together = kNumbersTogether<T>;
    const float4* a = rows_.spectra + static_cast<int64_t>(blockIdx.y) * (kSpectrum / together);
    const float4* b = a + kPoints / together;
    Unroll<kFftValues / together>([&](auto i) {
      const float4 of_a = SpectrumPart<kPoints>(a, i, thread_);
      const float4 of_b = SpectrumPart<kPoints>(b, i, thread_);
      Unroll<together>([&](auto j) {
        constexpr int e = together * i + j;
        Mix(z[e], SpectrumNumber<T>(of_a, j), SpectrumNumber<T>(of_b, j),
            shared[mirror.Address(e)]);
      });
    });
    __syncthreads();
  }

  __device__ void Store(const float2 (&z)[kFftValues]) const {
    const T* q = Row(rows_.q);
    T* y = Row(rows_.y);
    const float scale = SpectrumScale(rows_);
    Unroll<kFftValues>([&](auto j) {
      const float2 gate = LoadTwo(q + 2 * j * kThreads);
      StoreVector(
          Two{{FromFloat<T>(z[j].x * scale * gate.x), FromFloat<T>(z[j].y * scale * gate.y)}},
          y + 2 * j * kThreads);
    });
  }

 private:
  static constexpr int kThreads = kPoints / kFftValues;
  using Two = RowVector<T, 2>;

  // Where the mirror images of a thread's positions 16 t + e are in shared memory: in descending
  // order, but those of the first threads in two or three runs, from e = 0, 1 and 4 on.
  class Mirror {
   public:
    static_assert(kPoints == 16384, "the last pass is of radix 4");

    __device__ explicit Mirror(int thread)
        : first_(Of(thread, 0)), second_(Of(thread, 1)), rest_(Of(thread, 4)) {}

    __device__ int Address(int e) const {
      return e == 0 ? first_ : e < 4 ? second_ - (e - 1) : rest_ - (e - 4);
    }

   private:
    static __device__ int Of(int thread, int e) {
      return FftAddress(FftMirror(kPoints, kFftValues * thread + e));
    }

    int first_;
    int second_;
    int rest_;
  };

  // This thread's first two points.
  template <typename Element>
  __device__ Element* Row(Element* tensor) const {
    const int64_t row = static_cast<int64_t>(Forget(sequence_)) * rows_.channels + blockIdx.y;
    return tensor + 2 * (row * kPoints + thread_);
  }
  static __device__ float2 LoadTwo(const T* from) {
    const Two two = LoadVector<T, 2>(from);
    if constexpr (std::is_same_v<T, BF16>) {
      uint32_t bits;
      memcpy(&bits, &two, sizeof(bits));
      return make_float2(__uint_as_float(bits << 16), __uint_as_float(bits & 0xffff0000u));
    } else {
      return make_float2(two.values[0], two.values[1]);
    }
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

using Complex = std::complex<double>;

// The spectrum of every `step`-th value of `kernel` from the first on.
std::vector<Complex> Spectrum(std::span<const double> kernel, size_t first, size_t step) {
  std::vector<Complex> values;
  for (size_t t = first; t < kernel.size(); t += step) values.emplace_back(kernel[t]);
  return DoubleTransform(values);
}

// The factors A, or A and B of HalvedSequence for a kernel of 2 N points. With Z = X_e + i X_o made
// of the even and odd inputs, X_e = (Z + Z') / 2 and X_o = (Z - Z') / 2i, where Z'_f = conj(Z_-f);
// and Y_e = K_e X_e + w K_o X_o, Y_o = K_o X_e + K_e X_o with a delay of one,
// w = exp(-2 pi i f / N). So Y_e + i Y_o = (K_e + i K_o (1 - w) / 2) Z + (i K_o (1 + w) / 2) Z'.
std::vector<std::vector<Complex>> Factors(std::span<const double> kernel, bool halved) {
  if (!halved) return {Spectrum(kernel, 0, 1)};
  std::vector<Complex> a = Spectrum(kernel, 0, 2);
  std::vector<Complex> b = Spectrum(kernel, 1, 2);
  for (size_t f = 0; f < a.size(); ++f) {
    const double turn = static_cast<double>(f) / static_cast<double>(a.size());
    const Complex delay = std::polar(1.0, -2 * std::numbers::pi * turn);
    const Complex odd = Complex(0, 0.5) * b[f];
    a[f] += odd * (1.0 - delay);
    b[f] = odd * (1.0 + delay);
  }
  return {std::move(a), std::move(b)};
}

// The least power of two that is larger than all real and imaginary parts, or 1 if all are 0.
double ScaleOf(const std::vector<std::vector<Complex>>& factors) {
  double largest = 0;
  for (const std::vector<Complex>& spectrum : factors) {
    for (const Complex& value : spectrum) {
      largest = std::max({largest, std::abs(value.real()), std::abs(value.imag())});
    }
  }
  return largest == 0 ? 1 : std::exp2(std::ilogb(largest) + 1);
}

// Appends spectrum / divisor in the order in which blocks read it, as `Number`.
template <typename Number>
void Append(const std::vector<Complex>& spectrum, double divisor, std::vector<Number>& spectra) {
  const int points = static_cast<int>(spectrum.size());
  constexpr int together = 16 / sizeof(Number);
  const size_t begin = spectra.size();
  spectra.resize(begin + spectrum.size());
  for (int i = 0; i < points; ++i) {
    const std::complex<float> value(spectrum[static_cast<size_t>(FftFrequency(points, i))] /
                                    divisor);
    Number& number = spectra[begin + static_cast<size_t>(FftSpectrumOffset(points, i, together))];
    if constexpr (std::is_same_v<Number, __half2>) {
      number = __floats2half2_rn(value.real(), value.imag());
    } else {
      number = make_float2(value.real(), value.imag());
    }
  }
}

template <typename Value>
std::shared_ptr<void> Upload(Device& device, const std::vector<Value>& values) {
  const size_t bytes = values.size() * sizeof(values[0]);
  std::shared_ptr<void> memory = AllocateZeroed(device, bytes);
  CopyToDevice(device, values.data(), memory.get(), bytes);
  return memory;
}

class FusedGatedConv final : public GatedConv {
 public:
  FusedGatedConv(Device& device, std::span<const double> kernels, int64_t channels, int64_t points,
                 DType dtype)
      : device_(device), channels_(channels), points_(points), dtype_(dtype) {
    if (dtype == DType::kBF16) {
      UploadSpectra<__half2>(kernels);
    } else {
      UploadSpectra<float2>(kernels);
    }
    twiddles_ = Upload(device, FftTwiddles(transform()));
  }

  void Apply(const GatedConvCall& call) override {
    assert(call.k.rows == call.sequences * channels_ && call.k.cols == points_);
    assert(call.k.dtype == dtype_);
    if (dtype_ == DType::kBF16) {
      Start<BF16>(call);
    } else {
      Start<float>(call);
    }
  }

 private:
  bool halved() const { return points_ > kLongestBlockTransform; }
  int transform() const { return static_cast<int>(halved() ? points_ / 2 : points_); }

  template <typename Number>
  void UploadSpectra(std::span<const double> kernels) {
    std::vector<Number> spectra;
    std::vector<float> scales;
    for (int64_t c = 0; c < channels_; ++c) {
      const auto factors =
          Factors(kernels.subspan(static_cast<size_t>(c * points_), static_cast<size_t>(points_)),
                  halved());
      // Inverse transforms are not divided by their size.
      const double divisor = std::is_same_v<Number, __half2> ? ScaleOf(factors) : transform();
      for (const auto& spectrum : factors) Append(spectrum, divisor, spectra);
      scales.push_back(static_cast<float>(divisor / transform()));
    }
    spectra_ = Upload(device_, spectra);
    scales_ = Upload(device_, scales);
  }

  template <typename T>
  void Start(const GatedConvCall& call) {
    const GatedConvRows<T> rows = {
        .k = static_cast<const T*>(call.k.data),
        .v = static_cast<const T*>(call.v.data),
        .q = static_cast<const T*>(call.q.data),
        .y = static_cast<T*>(call.y.data),
        .spectra = static_cast<const float4*>(spectra_.get()),
        .scales = static_cast<const float*>(scales_.get()),
        .twiddles = static_cast<const float4*>(twiddles_.get()),
        .sequences = static_cast<int32_t>(call.sequences),
        .channels = static_cast<int32_t>(channels_),
    };
    if (halved()) {
      Start<HalvedSequence, T, kLongestBlockTransform>(rows, call.sequences);
    } else {
      StartPairs<T, kFftValues>(rows, (call.sequences + 1) / 2);
    }
  }

  template <typename T, int kPoints>
  void StartPairs(const GatedConvRows<T>& rows, int64_t pairs) {
    if (points_ == kPoints) {
      Start<SequencePair, T, kPoints>(rows, pairs);
    } else if constexpr (kPoints < kLongestBlockTransform) {
      StartPairs<T, 2 * kPoints>(rows, pairs);
    }
  }

  template <template <typename, int> typename Sequences, typename T, int kPoints>
  void Start(const GatedConvRows<T>& rows, int64_t transforms) {
    constexpr int groups = kConvGroups<kPoints>;
    const Grid grid = {
        .blocks = dim3(static_cast<unsigned>((transforms + groups - 1) / groups),
                       static_cast<unsigned>(channels_)),
        .threads = dim3(kConvThreads<kPoints>),
        .shared_bytes = groups * kFftShared<kPoints> * sizeof(float2),
    };
    Launch(device_, "gated_conv", GatedConvKernel<Sequences, T, kPoints>, grid, rows);
  }

  Device& device_;
  int64_t channels_;
  int64_t points_;
  DType dtype_;
  std::shared_ptr<void> spectra_;
  std::shared_ptr<void> scales_;
  std::shared_ptr<void> twiddles_;
};

}  // namespace

std::unique_ptr<GatedConv> MakeFusedGatedConv(Device& device, std::span<const double> kernels,
                                              int64_t channels, int64_t points, DType dtype) {
  assert(points >= kFftValues && points <= kLongestFusedTransform);
  assert(channels <= 65535);  // the second dimension of a grid
  return std::make_unique<FusedGatedConv>(device, kernels, channels, points, dtype);
}

}  // namespace hippodrome::cuda
