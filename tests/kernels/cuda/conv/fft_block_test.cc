#include "kernels/cuda/conv/fft_block.cuh"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "kernels/cuda/base/launch.cuh"
#include "tests/kernels/cpu/random_matrix.h"
#include "tests/kernels/cuda/device_matrix.h"

namespace hippodrome::cuda::fft_block_test {
namespace {

using Complex = std::complex<double>;

// Transforms that fill a warp.
template <int kPoints>
inline constexpr int kRows = kPoints < kWarp * kFftValues ? kWarp * kFftValues / kPoints : 1;

// Transforms of a number.
template <typename Number>
inline constexpr int kTogether = std::is_same_v<Number, HalfComplex> ? 2 : 1;

// [kTogether, kRows, N] each.
struct Arrays {
  const float2* z;
  float2* spectrum;  // by position
  float2* back;
  const float4* twiddles;
};

// The number whose transforms have their own every `distance` numbers.
template <typename Number>
__device__ Number Load(const float2* z, int distance) {
  if constexpr (std::is_same_v<Number, HalfComplex>) {
    return {__floats2half2_rn(z[0].x, z[distance].x), __floats2half2_rn(z[0].y, z[distance].y)};
  } else {
    return z[0];
  }
}
__device__ void Store(float2 number, float2* z, int) { z[0] = number; }
__device__ void Store(HalfComplex number, float2* z, int distance) {
  z[0] = make_float2(__low2float(number.x), __low2float(number.y));
  z[distance] = make_float2(__high2float(number.x), __high2float(number.y));
}

template <typename Number, int kPoints>
__global__ void TransformKernel(Arrays arrays) {
  using Fft = BlockFft<kPoints, Number>;
  constexpr int distance = kRows<kPoints> * kPoints;
  const int thread = threadIdx.x % Fft::kThreads;
  const int row = threadIdx.x / Fft::kThreads;
  Number* shared = reinterpret_cast<Number*>(SharedMemory()) + row * kFftShared<kPoints>;
  const Fft fft(thread, shared, arrays.twiddles);
  const int first = row * kPoints;
  Number z[kFftValues];
  for (int j = 0; j < kFftValues; ++j) {
    z[j] = Load<Number>(&arrays.z[first + thread + j * Fft::kThreads], distance);
  }
  fft.Forward(z);
  for (int e = 0; e < kFftValues; ++e) {
    Store(z[e], &arrays.spectrum[first + kFftValues * thread + e], distance);
  }
  fft.Inverse(z);
  for (int j = 0; j < kFftValues; ++j) {
    Store(z[j], &arrays.back[first + thread + j * Fft::kThreads], distance);
  }
}

// A device matrix of complex numbers.
std::vector<Complex> Pairs(const DeviceMatrix& matrix) {
  const std::vector<float> values = matrix.values();
  std::vector<Complex> pairs;
  for (size_t i = 0; i < values.size(); i += 2) pairs.emplace_back(values[i], values[i + 1]);
  return pairs;
}

double Norm(const std::vector<Complex>& values) {
  double sum = 0;
  for (const Complex& value : values) sum += std::norm(value);
  return std::sqrt(sum);
}

// |error|_2 <= c u log2(N) |z|_2, or of halves, whose roundings are not of one sign,
// 2 c u sqrt(log2 N) |z|_2; c about twice the largest seen.
template <typename Number>
double Bound(int points, const std::vector<Complex>& z) {
  const double passes = std::log2(static_cast<double>(points));
  if (std::is_same_v<Number, HalfComplex>) return 2 * 0x1p-11 * std::sqrt(passes) * Norm(z);
  return kUnitRoundoff * passes * Norm(z);
}

template <int kPoints, typename Number>
void ExpectTransform() {
  SCOPED_TRACE(kPoints);
  constexpr int rows = kRows<kPoints>;
  constexpr int all = kTogether<Number> * rows;
  Device device;
  const DeviceMatrix z(device, {all, 2 * kPoints}, RandomValues(all * 2 * kPoints, 1));
  const DeviceMatrix spectrum(device, {all, 2 * kPoints});
  const DeviceMatrix back(device, {all, 2 * kPoints});
  const std::vector<std::complex<float>> table = FftTwiddles(kPoints);
  const DeviceMatrix twiddles(device, {1, 2 * FftTwiddleCount(kPoints) + 1});
  CopyToDevice(device, table.data(), twiddles.view().data, table.size() * sizeof(table[0]));
  const auto numbers = [](const DeviceMatrix& m) { return static_cast<float2*>(m.view().data); };
  Launch(device, "transform", TransformKernel<Number, kPoints>,
         {.blocks = dim3(1),
          .threads = dim3(rows * BlockFft<kPoints>::kThreads),
          .shared_bytes = rows * kFftShared<kPoints> * sizeof(Number)},
         Arrays{numbers(z), numbers(spectrum), numbers(back),
                static_cast<const float4*>(twiddles.view().data)});

  const std::vector<Complex> input = Pairs(z);
  std::vector<Complex> forward_errors = Pairs(spectrum);
  std::vector<Complex> inverse_errors = Pairs(back);
  for (size_t row = 0; row < input.size(); row += kPoints) {
    const std::vector<Complex> expected = DoubleTransform(std::span(input).subspan(row, kPoints));
    for (int i = 0; i < kPoints; ++i) {
      const size_t index = row + static_cast<size_t>(i);
      forward_errors[index] -= expected[static_cast<size_t>(FftFrequency(kPoints, i))];
      inverse_errors[index] -= double{kPoints} * input[index];
    }
  }
  const double bound = Bound<Number>(kPoints, input);
  EXPECT_LT(Norm(forward_errors), 0.6 * bound * std::sqrt(double{kPoints}));
  EXPECT_LT(Norm(inverse_errors), 1.1 * bound * double{kPoints});
}

template <int kPoints>
void ExpectTransform() {
  ExpectTransform<kPoints, float2>();
  ExpectTransform<kPoints, HalfComplex>();
}

TEST(FftBlockTest, EveryLength) {
  ExpectTransform<16>();
  ExpectTransform<32>();
  ExpectTransform<64>();
  ExpectTransform<128>();
  ExpectTransform<256>();
  ExpectTransform<512>();
  ExpectTransform<1024>();
  ExpectTransform<2048>();
  ExpectTransform<4096>();
  ExpectTransform<8192>();
  ExpectTransform<16384>();
}

TEST(FftBlockTest, ThreadsMayRunInAnyOrder) {
  for (const cuda_on_cpu::ThreadOrder order :
       {cuda_on_cpu::ThreadOrder::kReverse, cuda_on_cpu::ThreadOrder::kShuffled}) {
    cuda_on_cpu::SetThreadOrder(order, 1);
    ExpectTransform<512>();
    ExpectTransform<2048>();
    ExpectTransform<16384>();
  }
  cuda_on_cpu::SetThreadOrder(cuda_on_cpu::ThreadOrder::kForward, 0);
}

TEST(FftTablesTest, DoubleTransformIsTheDefinition) {
  for (const size_t size : {1, 2, 8, 64}) {
    const std::vector<float> values = RandomValues(static_cast<int64_t>(2 * size), 3);
    std::vector<Complex> z;
    for (size_t t = 0; t < size; ++t) z.emplace_back(values[2 * t], values[2 * t + 1]);
    const std::vector<Complex> spectrum = DoubleTransform(z);
    for (size_t f = 0; f < size; ++f) {
      Complex sum;
      for (size_t t = 0; t < size; ++t) {
        const double turn = static_cast<double>(t * f) / static_cast<double>(size);
        sum += z[t] * std::polar(1.0, -2 * std::numbers::pi * turn);
      }
      EXPECT_NEAR(std::abs(spectrum[f] - sum), 0, 1e-12);
    }
  }
}

TEST(FftTablesTest, PositionsHoldEveryFrequencyOnce) {
  for (int points = 16; points <= kLongestBlockTransform; points *= 2) {
    std::vector<int> position_of(static_cast<size_t>(points), -1);
    std::vector<int> used(static_cast<size_t>(points));
    for (int i = 0; i < points; ++i) {
      position_of[static_cast<size_t>(FftFrequency(points, i))] = i;
      ++used[static_cast<size_t>(FftSpectrumOffset(points, i))];
    }
    for (int f = 0; f < points; ++f) {
      const int i = position_of[static_cast<size_t>(f)];
      ASSERT_GE(i, 0);
      ASSERT_EQ(used[static_cast<size_t>(f)], 1);
      ASSERT_EQ(FftMirror(points, i), position_of[static_cast<size_t>((points - f) % points)]);
    }
  }
}

}  // namespace
}  // namespace hippodrome::cuda::fft_block_test
