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

// Checks every `stride`-th point of each row: |error| <= c u log2(N) |K|_2 |k v|_2 |q|. Beside
// kBF16, with roundings to f16 that are not of one sign, their root mean square grows with
// sqrt(log2 N), and a point's share of |K|_2 |k v|_2 is 1 / sqrt(N):
// |error| <= c' u' sqrt(log2(N) / N) |K|_2 |k v|_2 |q|. c and c' are about twice the largest seen.
void ExpectConvolution(const Problem& p, const Values& kernels, const Values (&kvq)[3],
                       const Values& y, int64_t stride) {
  const auto points = static_cast<double>(p.points);
  const bool bf16 = p.dtype == DType::kBF16;
  const double roundoff = bf16 ? 5.5 * 0x1p-11 * std::sqrt(std::log2(points) / points)
                               : 0.5 * kUnitRoundoff * std::log2(points);
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

// y for rows k, v, q of `p`, and kernels [channels, points].
Values Convolve(const Problem& p, const Values& kernels, const Values (&kvq)[3]) {
  Device device;
  const std::unique_ptr<GatedConv> conv = MakeFusedGatedConv(
      device, std::vector<double>(kernels.begin(), kernels.end()), p.channels, p.points, p.dtype);
  const MatrixShape shape = {p.sequences * p.channels, p.points, p.dtype};
  const DeviceMatrix k(device, shape, kvq[0]);
  const DeviceMatrix v(device, shape, kvq[1]);
  const DeviceMatrix q(device, shape, kvq[2]);
  const DeviceMatrix y(device, shape);
  cuda_on_cpu::ResetLaunchCounts();
  conv->Apply({p.sequences, k.view(), v.view(), q.view(), y.view()});
  EXPECT_EQ(cuda_on_cpu::LaunchCount(), 1);
  EXPECT_TRUE(y.SurroundingsAreZero());
  return y.values();
}

// `sizes`: of the kernels of channels, over and over; `row_sizes`: of rows of k.
void ExpectGatedConv(const Problem& p, int64_t stride = 1, const Values& sizes = {1},
                     const Values& row_sizes = {1}) {
  SCOPED_TRACE(testing::Message() << "B " << p.sequences << " H " << p.channels << " N " << p.points
                                  << " " << Name(p.dtype));
  const auto points = static_cast<size_t>(p.points);
  Values kernels = RandomValues(p.channels * p.points, 4);
  for (size_t i = 0; i < kernels.size(); ++i) kernels[i] *= sizes[i / points % sizes.size()];
  Values kvq[3] = {p.Random(1), p.Random(2), p.Random(3)};
  for (size_t i = 0; i < kvq[0].size(); ++i) {
    kvq[0][i] = Stored(p.dtype, kvq[0][i] * row_sizes[i / points % row_sizes.size()]);
  }
  ExpectConvolution(p, kernels, kvq, Convolve(p, kernels, kvq), stride);
}

TEST(GatedConvTest, EveryLength) {
  for (int64_t points = 32; points <= 2048; points *= 2) {
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

TEST(GatedConvTest, KernelsAndRowsOfEverySize) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    ExpectGatedConv({2, 4, 512, dtype}, 7, {0, 1e-20f, 1, 3e9f});
    ExpectGatedConv({1, 3, 32768, dtype}, 5000, {1e-20f, 0, 3e9f});
    ExpectGatedConv({7, 1, 512, dtype}, 7, {1}, {0, 1e-20f, 1, 3e9f});
    ExpectGatedConv({3, 1, 2048, dtype}, 50, {3}, {1e20f, 1e-30f, 0});
  }
}

// Where all points of a row have the same sign, or take turns, one frequency has them all.
TEST(GatedConvTest, LargestSumsDoNotOverflow) {
  for (const int64_t points : {256, 32768}) {
    const Problem p = {2, 1, points, DType::kBF16};
    const Values ones(static_cast<size_t>(p.size()), 1.0f);
    Values turns = ones;
    for (size_t t = 0; t < turns.size(); t += 2) turns[t] = -1;
    const auto n = static_cast<size_t>(points);
    for (const Values& row : {ones, turns}) {
      const Values kernel(row.begin(), row.begin() + points);
      const Values y = Convolve(p, kernel, {row, ones, ones});
      for (size_t t = 0; t < y.size(); ++t) {
        const float expected = kernel[0] * row[t] * static_cast<float>(n);
        ASSERT_NEAR(y[t], expected, 0.01 * static_cast<double>(n)) << t << " of " << n;
      }
    }
  }
}

TEST(GatedConvTest, NeighboursDoNotMatter) {
  const Problem p = {2, 1, 1024, DType::kBF16};
  const Values kernel = RandomValues(p.points, 4);
  Values kvq[3] = {p.Random(1), p.Random(2), p.Random(3)};
  Values y = Convolve(p, kernel, kvq);
  for (size_t i = kvq[0].size() / 2; i < kvq[0].size(); ++i) kvq[0][i] *= 0x1p20f;
  const Values beside_large = Convolve(p, kernel, kvq);
  for (size_t i = y.size() / 2; i < y.size(); ++i) y[i] *= 0x1p20f;
  EXPECT_EQ(y, beside_large);
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
