#include "kernels/cpu/conv/fft_conv.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/cpu/random_matrix.h"

namespace hippodrome::cpu::fft_conv_test {
namespace {

using Values = std::vector<float>;

struct Problem {
  Problem(int64_t n_channels, int64_t n_points)
      : channels(n_channels), points(n_points), x(RandomValues(points * channels, 1)) {
    const Values random = RandomValues(channels * points, 2);
    kernels.assign(random.begin(), random.end());
  }

  Values Apply(int64_t rows, int64_t gap = 0, int threads = 2) const {
    ThreadPool pool(threads);
    const FftConv convolution(kernels, channels, points);
    const StridedMatrix in(rows, channels, gap, Values(x.begin(), x.begin() + rows * channels));
    const StridedMatrix out(rows, channels, gap);
    convolution.Apply(pool, in.view(), out.view());
    return out.values();
  }

  // |error| <= c u log2(L) |k|_2 |x|_2, checked at every `stride`-th time.
  void Expect(const Values& y, int64_t rows, int64_t stride) const {
    for (int64_t c = 0; c < channels; ++c) {
      double k2 = 0;
      double x2 = 0;
      for (int64_t t = 0; t < rows; ++t) {
        k2 += std::pow(kernels[size_t(c * points + t)], 2);
        x2 += std::pow(x[size_t(t * channels + c)], 2);
      }
      const double bound =
          2 * kUnitRoundoff * std::log2(double(FftPlan::LengthFor(points))) * std::sqrt(k2 * x2);
      for (int64_t t = rows - 1; t >= 0; t -= stride) {
        double sum = 0;
        for (int64_t s = 0; s <= t; ++s) {
          sum += kernels[size_t(c * points + s)] * x[size_t((t - s) * channels + c)];
        }
        ASSERT_NEAR(y[size_t(t * channels + c)], sum, bound)
            << "channel " << c << " time " << t << " of " << rows << " and " << points;
      }
    }
  }

  int64_t channels;
  int64_t points;
  std::vector<double> kernels;  // [channels, points]
  Values x;                     // [points, channels]
};

TEST(FftConvTest, EveryLength) {
  for (const int64_t points :
       {1, 2, 7, 63, 64, 65, 127, 128, 129, 255, 256, 257, 511, 512, 513, 1000, 1024, 1500, 2048}) {
    const Problem p(16, points);
    p.Expect(p.Apply(points), points, 1 + points / 300);
  }
}

TEST(FftConvTest, LongLengths) {
  for (const int64_t points : {4096, 8192, 16384, 20000, 32768}) {
    const Problem p(3, points);
    p.Expect(p.Apply(points), points, points / 50);
  }
}

TEST(FftConvTest, InputsShorterThanTheKernel) {
  const Problem p(16, 700);
  for (const int64_t rows : {1, 5, 64, 699}) {
    Problem part = p;
    part.Expect(p.Apply(rows), rows, 1);
  }
}

TEST(FftConvTest, EveryNumberOfChannels) {
  for (const int64_t channels : {1, 5, 15, 17, 33, 48}) {
    const Problem p(channels, 512);
    p.Expect(p.Apply(512), 512, 37);
  }
}

TEST(FftConvTest, AcceptsStridedMisalignedRows) {
  const Problem p(33, 256);
  for (const int64_t gap : {1, 3, 16}) EXPECT_EQ(p.Apply(256, gap), p.Apply(256));
}

TEST(FftConvTest, RepeatsBitForBitOnManyThreads) {
  const Problem p(80, 512);
  EXPECT_EQ(p.Apply(512, 0, 1), p.Apply(512, 0, 3));
}

TEST(FftConvTest, WorksInPlace) {
  const Problem p(20, 512);
  ThreadPool pool(2);
  const StridedMatrix x(512, 20, 0, p.x);
  FftConv(p.kernels, 20, 512).Apply(pool, x.view(), x.view());
  EXPECT_EQ(x.values(), p.Apply(512));
}

TEST(FftConvTest, TransformTileMakesTheSpectrumOfAKernel) {
  const FftPlan plan(512);
  std::vector<std::complex<double>> expected(512);
  const Values values = RandomValues(512, 4);
  const std::vector<double> kernel(values.begin(), values.end());
  plan.Spectrum(kernel.data(), 512, expected.data());
  const OwnedTensor tile = NewMatrix(512, kTileChannels, DType::kF32);
  const OwnedTensor spectrum = NewMatrix(512, 2 * kTileChannels, DType::kF32);
  const OwnedTensor work = NewMatrix(1, plan.work_floats(), DType::kF32);
  for (int64_t t = 0; t < 512; ++t) F32Row(tile, t)[3] = values[size_t(t)] / 512;
  TransformTile(plan, TileSeries(F32Row(tile, 0), 512), F32Row(spectrum, 0), F32Row(work, 0));
  for (int64_t i = 0; i < 512; ++i) {
    EXPECT_NEAR(F32Row(spectrum, i)[3], expected[size_t(i)].real(), 1e-6);
    EXPECT_NEAR(F32Row(spectrum, i)[kTileChannels + 3], expected[size_t(i)].imag(), 1e-6);
    EXPECT_EQ(F32Row(spectrum, i)[4], 0);
  }
}

TEST(FftPlanTest, LengthsArePowersOfTwoWithAPlan) {
  EXPECT_EQ(FftPlan::LengthFor(1), 64);
  EXPECT_EQ(FftPlan::LengthFor(65), 256);
  EXPECT_EQ(FftPlan::LengthFor(512), 512);
  EXPECT_EQ(FftPlan::LengthFor(513), 1024);
}

}  // namespace
}  // namespace hippodrome::cpu::fft_conv_test
