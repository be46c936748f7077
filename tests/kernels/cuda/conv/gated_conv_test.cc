#include "kernels/cuda/conv/gated_conv.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/cpu/random_matrix.h"
#include "tests/kernels/cuda/device_matrix.h"

namespace hippodrome::cuda::fft_conv_test {
namespace {

using Values = std::vector<float>;

struct Problem {
  int64_t sequences;
  int64_t channels;
  int64_t points;
  DType dtype = DType::kF32;

  int64_t size() const { return sequences * channels * points; }
  Values Random(uint32_t seed) const {
    Values values = RandomValues(size(), seed);
    for (float& value : values) value = Stored(dtype, value);
    return values;
  }
};

// Checks every `stride`-th point of each row: |error| <= c u log2(N) |K|_2 |k v|_2 |q|, and beside
// kBF16, where N numbers of the spectrum are rounded to f16, c' u' |K|_2 |k v|_2 |q| / sqrt(N)
// more; c and c' about twice the largest seen.
void ExpectConvolution(const Problem& p, const Values& kernels, const Values (&kvq)[3],
                       const Values& y, int64_t stride) {
  const auto points = static_cast<double>(p.points);
  const bool bf16 = p.dtype == DType::kBF16;
  const double roundoff =
      0.75 * kUnitRoundoff * std::log2(points) + (bf16 ? 2.5 * 0x1p-11 / std::sqrt(points) : 0);
  const auto n = static_cast<size_t>(p.points);
  for (size_t first = 0; first < y.size(); first += n) {
    const float* kernel = &kernels[first / n % static_cast<size_t>(p.channels) * n];
    double kernel2 = 0;
    double u2 = 0;
    std::vector<double> u(n);
    for (size_t t = 0; t < n; ++t) {
      u[t] = double{kvq[0][first + t]} * kvq[1][first + t];
      kernel2 += std::pow(kernel[t], 2);
      u2 += u[t] * u[t];
    }
    for (size_t t = 0; t < n; t += static_cast<size_t>(stride)) {
      double sum = 0;
      for (size_t s = 0; s < n; ++s) sum += kernel[s] * u[(t + n - s) % n];
      const double gated = sum * kvq[2][first + t];
      const double rounding = bf16 ? 0x1p-8 * 1.01 * std::abs(gated) : 0;
      ASSERT_NEAR(y[first + t], gated,
                  roundoff * std::sqrt(kernel2 * u2) * std::abs(kvq[2][first + t]) + rounding)
          << "row " << first / n << " time " << t << " of " << n;
    }
  }
}

// `sizes`: of the kernels of channels, over and over.
void ExpectGatedConv(const Problem& p, int64_t stride = 1, const Values& sizes = {1}) {
  SCOPED_TRACE(testing::Message() << "B " << p.sequences << " H " << p.channels << " N " << p.points
                                  << " " << Name(p.dtype));
  Device device;
  Values kernels = RandomValues(p.channels * p.points, 4);
  for (size_t i = 0; i < kernels.size(); ++i) {
    kernels[i] *= sizes[i / static_cast<size_t>(p.points) % sizes.size()];
  }
  const std::unique_ptr<GatedConv> conv = MakeFusedGatedConv(
      device, std::vector<double>(kernels.begin(), kernels.end()), p.channels, p.points, p.dtype);
  const Values kvq[3] = {p.Random(1), p.Random(2), p.Random(3)};
  const MatrixShape shape = {p.sequences * p.channels, p.points, p.dtype};
  const DeviceMatrix k(device, shape, kvq[0]);
  const DeviceMatrix v(device, shape, kvq[1]);
  const DeviceMatrix q(device, shape, kvq[2]);
  const DeviceMatrix y(device, shape);
  cuda_on_cpu::ResetLaunchCounts();
  conv->Apply({p.sequences, k.view(), v.view(), q.view(), y.view()});
  EXPECT_EQ(cuda_on_cpu::LaunchCount(), 1);
  ExpectConvolution(p, kernels, kvq, y.values(), stride);
  EXPECT_TRUE(y.SurroundingsAreZero());
}

TEST(GatedConvTest, EveryLength) {
  for (int64_t points = 16; points <= 2048; points *= 2) {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      ExpectGatedConv({3, 2, points, dtype}, 1 + points / 200);
    }
  }
}

TEST(GatedConvTest, LongLengths) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const int64_t points : {4096, 8192, 16384, 32768}) {
      ExpectGatedConv({2, 1, points, dtype}, points / 37);
    }
  }
}

TEST(GatedConvTest, EveryNumberOfSequencesAndChannels) {
  for (const int64_t sequences : {1, 2, 5, 9, 16}) {
    ExpectGatedConv({sequences, 1, 64}, 7);
    ExpectGatedConv({sequences, 3, 256}, 17);
  }
  ExpectGatedConv({1, 2, 32768}, 5000);
}

TEST(GatedConvTest, KernelsOfEverySize) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    ExpectGatedConv({2, 4, 512, dtype}, 7, {0, 1e-20f, 1, 3e9f});
    ExpectGatedConv({1, 3, 32768, dtype}, 5000, {1e-20f, 0, 3e9f});
  }
}

TEST(GatedConvTest, ThreadsMayRunInAnyOrder) {
  for (const cuda_on_cpu::ThreadOrder order :
       {cuda_on_cpu::ThreadOrder::kReverse, cuda_on_cpu::ThreadOrder::kShuffled}) {
    cuda_on_cpu::SetThreadOrder(order, 1);
    ExpectGatedConv({3, 1, 128}, 1);
    ExpectGatedConv({2, 1, 2048}, 50);
    ExpectGatedConv({1, 1, 32768}, 1000);
  }
  cuda_on_cpu::SetThreadOrder(cuda_on_cpu::ThreadOrder::kForward, 0);
}

}  // namespace
}  // namespace hippodrome::cuda::fft_conv_test
