#include "kernels/cpu/conv/long_conv.h"

#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "kernels/ssm/diagonal_ssm.h"
#include "tests/kernels/cpu/random_diagonal_ssm.h"

namespace hippodrome::cpu::long_conv_test {
namespace {

using Values = std::vector<float>;

struct Problem {
  Problem(int64_t n_channels, int64_t n_heads, int64_t n_tokens, int64_t n_sequences = 1)
      : channels(n_channels),
        tokens(n_tokens),
        sequences(n_sequences),
        ssm(channels, n_heads, 7),
        weights(ssm.parameters(), tokens),
        kernels(DiagonalKernel(ssm.parameters(), tokens)),
        u(RandomValues(sequences * tokens * channels, 6)) {
    for (int64_t h = 0; h < n_heads; ++h)
      kernels[size_t(h * tokens)] += ssm.parameters().d[size_t(h)];
  }

  Values Convolve(ConvMethod method, Direction direction, int threads = 2, int64_t gap = 0) const {
    ThreadPool pool(threads);
    FftPlans plans;
    const StridedMatrix in(sequences * tokens, channels, gap, u);
    const StridedMatrix out(sequences * tokens, channels, gap);
    ConvolveSequences(pool, plans, weights, in.view(), sequences, direction, out.view(), method);
    return out.values();
  }

  const double* Kernel(int64_t channel) const {
    return kernels.data() + channel / (channels / weights.heads()) * tokens;
  }
  double U(int64_t t, int64_t channel) const { return u[size_t(t * channels + channel)]; }

  int64_t channels, tokens, sequences;
  RandomDiagonalSsm ssm;
  LongConvKernels weights;
  std::vector<double> kernels;  // [heads, tokens], with the skip
  Values u;                     // [sequences * tokens, channels]
};

class LongConvTest : public testing::TestWithParam<std::tuple<ConvMethod, Direction>> {
 protected:
  ConvMethod method() const { return std::get<0>(GetParam()); }
  Direction direction() const { return std::get<1>(GetParam()); }

  Values Convolve(const Problem& p, int threads = 2, int64_t gap = 0) const {
    return p.Convolve(method(), direction(), threads, gap);
  }

  // Checks every `stride`-th time of the first sequence. A product: t + 1 roundings of its sum and
  // one of each K. An FFT: 2 u log2 of its length, and the roundings of K and of its spectrum.
  void Expect(const Problem& p, const Values& y, int64_t stride = 1) const {
    const double fft_error =
        kUnitRoundoff * (2 * std::log2(double(FftPlan::LengthFor(p.tokens))) + 2);
    for (int64_t c = 0; c < p.channels; ++c) {
      const double* kernel = p.Kernel(c);
      double k2 = 0;
      double u2 = 0;
      for (int64_t t = 0; t < p.tokens; ++t) {
        k2 += kernel[t] * kernel[t];
        u2 += p.U(t, c) * p.U(t, c);
      }
      for (int64_t t = p.tokens - 1; t >= 0; t -= stride) {
        const bool forward = direction() == Direction::kForward;
        double sum = 0;
        double magnitude = 0;
        for (int64_t l = 0; l < (forward ? t + 1 : p.tokens - t); ++l) {
          const double product = kernel[l] * p.U(forward ? t - l : t + l, c);
          sum += product;
          magnitude += std::abs(product);
        }
        const double bound = method() == ConvMethod::kFft ? fft_error * std::sqrt(k2 * u2)
                                                          : Gamma(p.tokens + 1) * magnitude;
        ASSERT_NEAR(y[size_t(t * p.channels + c)], sum, bound)
            << "channel " << c << " time " << t << " of " << p.tokens;
      }
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Methods, LongConvTest,
                         testing::Combine(testing::Values(ConvMethod::kToeplitz, ConvMethod::kFft),
                                          testing::Values(Direction::kForward,
                                                          Direction::kBackward)));

TEST_P(LongConvTest, EveryLength) {
  for (const int64_t tokens : {1, 2, 5, 6, 7, 9, 63, 64, 65, 100, 128, 255, 256, 300, 512}) {
    const Problem p(32, 1, tokens);
    Expect(p, Convolve(p), 1 + tokens / 70);
  }
}

TEST_P(LongConvTest, LongSequences) {
  for (const int64_t tokens : {1000, 4097}) {
    const Problem p(2, 1, tokens);
    Expect(p, Convolve(p), tokens / 30);
  }
}

TEST_P(LongConvTest, EveryNumberOfChannels) {
  for (const int64_t channels : {1, 5, 16, 20, 31, 48, 64, 65, 130}) {
    const Problem p(channels, 1, 70);
    Expect(p, Convolve(p), 11);
  }
}

TEST_P(LongConvTest, TilesDoNotStraddleHeads) {
  for (const auto& [channels, heads] :
       {std::pair<int64_t, int64_t>{48, 3}, {20, 4}, {3, 3}, {140, 2}, {192, 2}, {33, 33}}) {
    const Problem p(channels, heads, 75);
    Expect(p, Convolve(p), 9);
  }
}

TEST_P(LongConvTest, AcceptsStridedMisalignedRows) {
  const Problem p(37, 1, 90, 2);
  for (const int64_t gap : {1, 3, 16}) EXPECT_EQ(Convolve(p, 2, gap), Convolve(p));
}

TEST_P(LongConvTest, ASequenceIsTheSameBesideOthersAndOnAnyNumberOfThreads) {
  const Problem all(40, 2, 77, 5);
  const Values expected = Convolve(all, 1);
  EXPECT_EQ(Convolve(all, 3), expected);
  const int64_t size = all.tokens * all.channels;
  for (int64_t b = 0; b < all.sequences; ++b) {
    Problem one = all;
    one.sequences = 1;
    one.u = Values(all.u.begin() + b * size, all.u.begin() + (b + 1) * size);
    const Values y = Convolve(one);
    EXPECT_EQ(y, Values(expected.begin() + b * size, expected.begin() + (b + 1) * size)) << b;
    if (b == 0) Expect(one, y);
  }
}

TEST_P(LongConvTest, SequencesShorterThanTheKernel) {
  const Problem longest(20, 1, 600);
  for (const int64_t tokens : {1, 64, 300}) {
    Problem p(20, 1, tokens);
    p.weights = longest.weights;
    Expect(p, Convolve(p), 7);
  }
}

TEST(LongConvTest, BackwardIsForwardInReversedTimeBitForBit) {
  for (const ConvMethod method : {ConvMethod::kToeplitz, ConvMethod::kFft}) {
    Problem p(36, 1, 133);
    const Values backward = p.Convolve(method, Direction::kBackward);
    const auto reverse = [&](const Values& from) {
      Values to;
      for (int64_t t = p.tokens - 1; t >= 0; --t) {
        to.insert(to.end(), from.begin() + t * p.channels, from.begin() + (t + 1) * p.channels);
      }
      return to;
    };
    p.u = reverse(p.u);
    EXPECT_EQ(reverse(p.Convolve(method, Direction::kForward)), backward);
  }
}

TEST(LongConvTest, TheFastestIsOneOfBoth) {
  for (const int64_t tokens : {40, 700}) {
    const Problem p(4, 1, tokens);
    const Values fastest = p.Convolve(ConvMethod::kFastest, Direction::kForward);
    const bool is_short = tokens == 40;
    EXPECT_EQ(fastest,
              p.Convolve(is_short ? ConvMethod::kToeplitz : ConvMethod::kFft, Direction::kForward));
  }
}

TEST(LongConvTest, SpectraCountOnceTheyExist) {
  const Problem p(32, 2, 100);
  const int64_t before = p.weights.bytes();
  EXPECT_GE(before, 2 * 100 * int64_t{sizeof(float)});
  p.Convolve(ConvMethod::kToeplitz, Direction::kForward);
  EXPECT_EQ(p.weights.bytes(), before);
  p.Convolve(ConvMethod::kFft, Direction::kForward);
  const int64_t spectra = 2 * 256 * 2 * int64_t{sizeof(float)};
  EXPECT_EQ(p.weights.bytes(), before + spectra);
  p.Convolve(ConvMethod::kFft, Direction::kBackward);
  EXPECT_EQ(p.weights.bytes(), before + spectra);
}

}  // namespace
}  // namespace hippodrome::cpu::long_conv_test
