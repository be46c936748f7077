// The fused gated convolution: rows of k, v and q are read once, y is written once, and everything
// between stays in the registers and the shared memory of one block. A row is transformed as half
// as many complex numbers, its even and odd points; rows of bf16 in halves, two sequences of a
// channel with each instruction.
//
// Of two rows of 4096 bf16 points, a block of 128 threads moves 64 KB to and from device memory,
// 16 KB from the caches (the factors; blocks of one channel are neighbours), 160 KB through shared
// memory in five exchanges, and takes 40 instructions per point: at 1.8 GHz, the arithmetic of a
// multiprocessor of an H100 needs half as long as its part of the device memory, its shared memory
// a third. Factors are read again by each block: 64 registers per thread hold the points alone, but
// leave room for 1024 threads, whose loads and sums overlap.
#include "kernels/cuda/conv/gated_conv.h"

#include <cuda_fp16.h>

#include <array>
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
  const float4* factors;  // of the channels, see Factors()
  const float* scales;    // that results of the channels are to be multiplied by, beside kBF16
  const float4* twiddles;
  int32_t sequences;
  int32_t channels;
};

// What rows of T are transformed as. Two sequences at once where numbers are halves.
template <typename T>
using ConvNumber = std::conditional_t<std::is_same_v<T, BF16>, HalfComplex, float2>;
template <typename T>
constexpr int kConvSequences = std::is_same_v<T, BF16> ? 2 : 1;

// Factors of numbers in 16 bytes, of f32 or, beside HalfComplex, of f16.
template <typename Number>
constexpr int kFactorsTogether = std::is_same_v<Number, HalfComplex> ? 4 : 2;

// Factor i of such 16 bytes.
template <typename Number>
__device__ inline Number Factor(const float4& bytes, int i) {
  if constexpr (std::is_same_v<Number, HalfComplex>) {
    const float word = i == 0 ? bytes.x : i == 1 ? bytes.y : i == 2 ? bytes.z : bytes.w;
    const unsigned bits = __float_as_uint(word);
    __half2 number;
    memcpy(&number, &bits, sizeof(number));
    return TwoTimes(number);
  } else {
    return i == 0 ? make_float2(bytes.x, bytes.y) : make_float2(bytes.z, bytes.w);
  }
}

// Threads of a block: at least 64, so several transforms if they are short.
template <int kPoints>
constexpr int kConvThreads = kPoints / kFftValues < 64 ? 64 : kPoints / kFftValues;
// Blocks on a multiprocessor: 1024 threads with 64 registers each, where that is enough.
template <int kPoints>
constexpr int kConvBlocks = (kPoints == 16 ? 512 : 1024) / kConvThreads<kPoints>;
template <int kPoints>
constexpr int kConvGroups = kConvThreads<kPoints> / (kPoints / kFftValues);

// Two neighbours in a row.
__device__ inline float2 LoadTwo(const float* from) {
  const auto two = LoadVector<float, 2>(from);
  return make_float2(two.values[0], two.values[1]);
}
__device__ inline float2 LoadTwo(const BF16* from) {
  const auto two = LoadVector<BF16, 2>(from);
  uint32_t bits;
  memcpy(&bits, &two, sizeof(bits));
  return make_float2(__uint_as_float(bits << 16), __uint_as_float(bits & 0xffff0000u));
}
template <typename T>
__device__ inline void StoreTwo(float2 two, T* to) {
  StoreVector(RowVector<T, 2>{{FromFloat<T>(two.x), FromFloat<T>(two.y)}}, to);
}

// A thread's points of one sequence of the channel blockIdx.y: those of z_t = x_2t + i x_2t+1 at
// thread + j N / 16. Beyond the last sequence it reads that one again, and stores nothing.
template <typename T, int kPoints>
class ConvRow {
 public:
  __device__ ConvRow(const GatedConvRows<T>& rows, int sequence, int thread)
      : rows_(rows),
        sequence_(min(sequence, rows.sequences - 1)),
        exists_(sequence < rows.sequences),
        thread_(thread) {}

  // k v
  __device__ void Load(float2 (&z)[kFftValues]) const {
    const T* k = Start(rows_.k);
    const T* v = Start(rows_.v);
    Unroll<kFftValues>([&](auto j) {
      const float2 a = LoadTwo(k + j * kDistance);
      const float2 b = LoadTwo(v + j * kDistance);
      z[j] = make_float2(a.x * b.x, a.y * b.y);
    });
  }
  // q * scale * value(j), j being a constant.
  template <typename Value>
  __device__ void Store(float scale, const Value& value) const {
    if (!exists_) return;
    const T* q = Start(rows_.q);
    T* y = Start(rows_.y);
    Unroll<kFftValues>([&](auto j) {
      const float2 gate = LoadTwo(q + j * kDistance);
      const float2 z = value(j);
      StoreTwo(make_float2(z.x * scale * gate.x, z.y * scale * gate.y), y + j * kDistance);
    });
  }

 private:
  static constexpr int kDistance = 2 * kPoints / kFftValues;

  template <typename Element>
  __device__ Element* Start(Element* tensor) const {
    const int64_t row = static_cast<int64_t>(Forget(sequence_)) * rows_.channels + blockIdx.y;
    return tensor + 2 * (row * kPoints + Forget(thread_));
  }

  const GatedConvRows<T>& rows_;
  int sequence_;
  bool exists_;
  int thread_;
};

// Powers of two, of which rows are multiples of less than one in size while they are transformed in
// halves: for two sequences.
struct RowScales {
  float first;
  float second;
};

// The larger ones of those of the kThreads threads of a transform. `shared`: room for each warp's.
template <int kThreads>
__device__ inline RowScales LargerScales(RowScales scales, int thread, RowScales* shared) {
  const auto of_lanes = [&](int lanes) {
    for (int mask = lanes / 2; mask > 0; mask /= 2) {
      scales.first = fmaxf(scales.first, __shfl_xor_sync(kAllLanes, scales.first, mask));
      scales.second = fmaxf(scales.second, __shfl_xor_sync(kAllLanes, scales.second, mask));
    }
  };
  of_lanes(kThreads < kWarp ? kThreads : kWarp);
  if constexpr (kThreads > kWarp) {
    constexpr int warps = kThreads / kWarp;
    if (thread % kWarp == 0) shared[thread / kWarp] = scales;
    __syncthreads();
    scales = shared[thread % warps];
    of_lanes(warps);
  }
  return scales;
}

// What a transform of rows of T starts with, and what becomes of its result.
template <typename T, int kPoints>
class ConvSequences;

template <int kPoints>
class ConvSequences<float, kPoints> {
 public:
  __device__ ConvSequences(const GatedConvRows<float>& rows, int sequence, int thread, RowScales*)
      : row_(rows, sequence, thread) {}

  __device__ void Load(float2 (&z)[kFftValues]) const { row_.Load(z); }
  __device__ void Store(const float2 (&z)[kFftValues]) const {
    row_.Store(1.0f, [&](auto j) { return z[j]; });
  }

 private:
  ConvRow<float, kPoints> row_;
};

template <int kPoints>
class ConvSequences<BF16, kPoints> {
 public:
  __device__ ConvSequences(const GatedConvRows<BF16>& rows, int sequence, int thread,
                           RowScales* shared)
      : rows_(rows),
        first_(rows, sequence, thread),
        second_(rows, sequence + 1, thread),
        thread_(thread),
        shared_(shared) {}

  // Each thread scales its own points until it knows those of the others: as f32 there are too many
  // to keep.
  __device__ void Load(HalfComplex (&z)[kFftValues]) {
    __half2 first[kFftValues];
    __half2 second[kFftValues];
    const RowScales own = {LoadRow(first_, first), LoadRow(second_, second)};
    scales_ = LargerScales<kPoints / kFftValues>(own, thread_, shared_);
    const __half2 factor = __floats2half2_rn(own.first * PowerInverse(scales_.first),
                                             own.second * PowerInverse(scales_.second));
    Unroll<kFftValues>([&](auto j) {
      z[j] = {__hmul2(__lows2half2(first[j], second[j]), factor),
              __hmul2(__highs2half2(first[j], second[j]), factor)};
    });
  }

  __device__ void Store(const HalfComplex (&z)[kFftValues]) const {
    const float of_kernel = rows_.scales[blockIdx.y];
    first_.Store(scales_.first * of_kernel,
                 [&](auto j) { return make_float2(__low2float(z[j].x), __low2float(z[j].y)); });
    second_.Store(scales_.second * of_kernel,
                  [&](auto j) { return make_float2(__high2float(z[j].x), __high2float(z[j].y)); });
  }

 private:
  using Row = ConvRow<BF16, kPoints>;

  static __device__ float PowerInverse(float power) {
    return __uint_as_float(0x7f000000u - __float_as_uint(power));
  }

  // Divides the points by a power of two that is larger than all of them, and returns it. Beyond
  // 2^125, where it is not, f32 sums overflow as well.
  static __device__ float LoadRow(const Row& row, __half2 (&points)[kFftValues]) {
    float2 products[kFftValues];
    row.Load(products);
    float largest = 0x1p-126f;
    Unroll<kFftValues>([&](auto j) {
      largest = fmaxf(largest, fmaxf(fabsf(products[j].x), fabsf(products[j].y)));
    });
    const unsigned exponent = __float_as_uint(fminf(largest, 0x1p125f)) & 0x7f800000u;
    const float power = __uint_as_float(exponent + 0x00800000u);
    const float inverse = PowerInverse(power);
    Unroll<kFftValues>([&](auto j) {
      points[j] = __floats2half2_rn(products[j].x * inverse, products[j].y * inverse);
    });
    return power;
  }

  const GatedConvRows<BF16>& rows_;
  Row first_;
  Row second_;
  int thread_;
  RowScales* shared_;
  RowScales scales_ = {};
};

// Where the mirror images of a thread's positions 16 t + e are in shared memory: in descending
// order, but those of the first thread in three runs, from e = 0, 1 and kLast on, kLast being the
// radix of the last pass.
template <int kPoints>
class Mirror {
 public:
  __device__ explicit Mirror(int thread)
      : first_(Of(thread, 0)), second_(Of(thread, 1)), rest_(Of(thread, kLast)) {}

  __device__ int Address(int e) const {
    return e == 0 ? first_ : e < kLast ? second_ - (e - 1) : rest_ - (e - kLast);
  }

 private:
  static constexpr int LastRadix(int points) {
    return points > kFftValues ? LastRadix(points / kFftValues) : points;
  }
  static constexpr int kLast = LastRadix(kPoints);

  static __device__ int Of(int thread, int e) {
    return FftAddress(FftMirror(kPoints, (kFftValues * thread + e) % kPoints));
  }

  int first_;
  int second_;
  int rest_;
};

// Z_f <- A_f Z_f + B_f conj(Z_-f), see Factors(). factors: A, then B, of N numbers each.
template <int kPoints, typename Number>
__device__ inline void Filter(Number (&z)[kFftValues], int thread, const float4* factors,
                              Number* shared) {
  constexpr int threads = kPoints / kFftValues;
  constexpr int together = kFactorsTogether<Number>;
  Number* own = shared + FftAddress(kFftValues * thread);
  Unroll<kFftValues>([&](auto e) { own[e] = z[e]; });
  WaitForNeighbours<threads>();
  const Mirror<kPoints> mirror(thread);
  const float4* a = factors + thread;
  const float4* b = a + kPoints / together;
  Unroll<kFftValues / together>([&](auto i) {
    const float4 of_a = a[i * threads];
    const float4 of_b = b[i * threads];
    Unroll<together>([&](auto j) {
      constexpr int e = together * i + j;
      const Number mirrored = shared[mirror.Address(e)];
      const Number other = ComplexMultiplyConjugate(Factor<Number>(of_b, j), mirrored);
      z[e] = ComplexMultiplyAdd(Factor<Number>(of_a, j), z[e], other);
    });
  });
  WaitForNeighbours<threads>();
}

// Transforms of kPoints points, of rows of twice as many.
template <typename T, int kPoints>
__global__ void __launch_bounds__(kConvThreads<kPoints>, kConvBlocks<kPoints>)
    GatedConvKernel(GatedConvRows<T> rows) {
  using Number = ConvNumber<T>;
  using Fft = BlockFft<kPoints, Number>;
  const int group = threadIdx.x / Fft::kThreads;
  const int thread = threadIdx.x % Fft::kThreads;
  Number* numbers = reinterpret_cast<Number*>(SharedMemory());
  Number* shared = numbers + group * kFftShared<kPoints>;
  auto* scales = reinterpret_cast<RowScales*>(numbers + kConvGroups<kPoints> * kFftShared<kPoints>);
  const int transform = blockIdx.x * kConvGroups<kPoints> + group;
  ConvSequences<T, kPoints> sequences(rows, transform * kConvSequences<T>, thread, scales);
  Number z[kFftValues];
  sequences.Load(z);
  const Fft fft(thread, shared, rows.twiddles);
  fft.Forward(z);
  constexpr int factors = 2 * kPoints / kFactorsTogether<Number>;
  Filter<kPoints>(z, thread, rows.factors + int64_t{blockIdx.y} * factors, shared);
  fft.Inverse(z);
  sequences.Store(z);
}

using Complex = std::complex<double>;

// The spectrum of every second value of `kernel` from `first` on.
std::vector<Complex> Spectrum(std::span<const double> kernel, size_t first) {
  std::vector<Complex> values;
  for (size_t t = first; t < kernel.size(); t += 2) values.emplace_back(kernel[t]);
  return DoubleTransform(values);
}

// A and B for a kernel of 2 N points. With Z = X_e + i X_o made of the even and odd inputs,
// X_e = (Z + Z') / 2 and X_o = (Z - Z') / 2i, where Z'_f = conj(Z_-f);
// and Y_e = K_e X_e + w K_o X_o, Y_o = K_o X_e + K_e X_o with a delay of one,
// w = exp(-2 pi i f / N). So Y_e + i Y_o = (K_e + i K_o (1 - w) / 2) Z + (i K_o (1 + w) / 2) Z'.
std::array<std::vector<Complex>, 2> Factors(std::span<const double> kernel) {
  std::vector<Complex> a = Spectrum(kernel, 0);
  std::vector<Complex> b = Spectrum(kernel, 1);
  for (size_t f = 0; f < a.size(); ++f) {
    const double turn = static_cast<double>(f) / static_cast<double>(a.size());
    const Complex delay = std::polar(1.0, -2 * std::numbers::pi * turn);
    const Complex odd = Complex(0, 0.5) * b[f];
    a[f] += odd * (1.0 - delay);
    b[f] = odd * (1.0 + delay);
  }
  return {std::move(a), std::move(b)};
}

// The least power of two that is larger than the sum of the sizes of a kernel's values, by which
// results are larger than inputs at most; 1 if all are 0.
double ScaleOf(std::span<const double> kernel) {
  double sum = 0;
  for (const double value : kernel) sum += std::abs(value);
  return sum == 0 ? 1 : std::exp2(std::ilogb(sum) + 1);
}

// Appends spectrum / divisor in the order in which blocks read it, as `Number`.
template <typename Number>
void Append(const std::vector<Complex>& spectrum, double divisor, std::vector<Number>& factors) {
  const int points = static_cast<int>(spectrum.size());
  constexpr int together = 16 / sizeof(Number);
  const size_t begin = factors.size();
  factors.resize(begin + spectrum.size());
  for (int i = 0; i < points; ++i) {
    const std::complex<float> value(spectrum[static_cast<size_t>(FftFrequency(points, i))] /
                                    divisor);
    Number& number = factors[begin + static_cast<size_t>(FftSpectrumOffset(points, i, together))];
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
      UploadFactors<__half2>(kernels);
    } else {
      UploadFactors<float2>(kernels);
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
  int transform() const { return static_cast<int>(points_ / 2); }

  template <typename Number>
  void UploadFactors(std::span<const double> kernels) {
    std::vector<Number> factors;
    std::vector<float> scales;
    for (int64_t c = 0; c < channels_; ++c) {
      const auto kernel =
          kernels.subspan(static_cast<size_t>(c * points_), static_cast<size_t>(points_));
      // Inverse transforms are not divided by their size.
      const double divisor = std::is_same_v<Number, __half2> ? ScaleOf(kernel) : transform();
      for (const auto& spectrum : Factors(kernel)) Append(spectrum, divisor, factors);
      scales.push_back(static_cast<float>(divisor / transform()));
    }
    factors_ = Upload(device_, factors);
    scales_ = Upload(device_, scales);
  }

  template <typename T>
  void Start(const GatedConvCall& call) {
    const GatedConvRows<T> rows = {
        .k = static_cast<const T*>(call.k.data),
        .v = static_cast<const T*>(call.v.data),
        .q = static_cast<const T*>(call.q.data),
        .y = static_cast<T*>(call.y.data),
        .factors = static_cast<const float4*>(factors_.get()),
        .scales = static_cast<const float*>(scales_.get()),
        .twiddles = static_cast<const float4*>(twiddles_.get()),
        .sequences = static_cast<int32_t>(call.sequences),
        .channels = static_cast<int32_t>(channels_),
    };
    WithTransform<kFftValues>(transform(), [&](auto points) { Start<T, points>(rows); });
  }

  template <typename T, int kPoints>
  void Start(const GatedConvRows<T>& rows) {
    constexpr int groups = kConvGroups<kPoints>;
    constexpr int sequences = groups * kConvSequences<T>;
    const Grid grid = {
        .blocks = dim3(static_cast<unsigned>((rows.sequences + sequences - 1) / sequences),
                       static_cast<unsigned>(channels_)),
        .threads = dim3(kConvThreads<kPoints>),
        .shared_bytes =
            groups * kFftShared<kPoints> * sizeof(ConvNumber<T>) + kWarp * sizeof(RowScales),
    };
    Launch(device_, "gated_conv", GatedConvKernel<T, kPoints>, grid, rows);
  }

  Device& device_;
  int64_t channels_;
  int64_t points_;
  DType dtype_;
  std::shared_ptr<void> factors_;
  std::shared_ptr<void> scales_;
  std::shared_ptr<void> twiddles_;
};

}  // namespace

std::unique_ptr<GatedConv> MakeFusedGatedConv(Device& device, std::span<const double> kernels,
                                              int64_t channels, int64_t points, DType dtype) {
  assert(points >= 2 * kFftValues && points <= kLongestFusedTransform);
  assert(channels <= 65535);  // the second dimension of a grid
  return std::make_unique<FusedGatedConv>(device, kernels, channels, points, dtype);
}

}  // namespace hippodrome::cuda
