#include "kernels/cpu/conv/long_conv.h"

#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "tests/kernels/cpu/random_diagonal_ssm.h"

namespace hippodrome::cpu::long_conv_backward_test {
namespace {

using Values = std::vector<float>;

struct Results {
  Values du;
  std::vector<double> dk;  // [H, longest]
};

struct Problem {
  Problem(int64_t n_channels, int64_t n_heads, int64_t n_tokens, int64_t n_sequences = 1)
      : channels(n_channels),
        tokens(n_tokens),
        sequences(n_sequences),
        longest(n_tokens),
        ssm(channels, n_heads, 3),
        u(RandomValues(sequences * tokens * channels, 6)),
        dy(RandomValues(sequences * tokens * channels, 7)) {}

  struct Options {
    int threads = 2;
    int64_t gap = 0;
    bool add = false;
    bool wanted = true;
    int calls = 1;
  };
  Results Backward(ConvMethod method, Direction direction, const Options& options) const {
    ThreadPool pool(options.threads);
    FftPlans plans;
    const LongConvKernels weights(ssm.parameters(), longest);
    LongConvKernelGradients sums(weights.tiling(), longest);
    const int64_t rows = sequences * tokens;
    const StridedMatrix inputs(rows, channels, options.gap, u);
    const StridedMatrix outputs(rows, channels, options.gap, dy);
    const StridedMatrix du(rows, channels, options.gap, Values(u.size(), 1.0f));
    const Gradient gradient = {options.wanted ? du.view() : Tensor(), options.add};
    for (int i = 0; i < options.calls; ++i) {
      ConvolveSequencesBackward(pool, plans, weights, inputs.view(), sequences, direction,
                                outputs.view(), gradient, sums, method);
    }
    return {du.values(), sums.OfHeads()};
  }

  // Element (b, t, c), time in the order of `direction`.
  double At(const Values& of, Direction direction, int64_t b, int64_t t, int64_t c) const {
    const int64_t row = direction == Direction::kForward ? t : tokens - 1 - t;
    return of[size_t((b * tokens + row) * channels + c)];
  }

  int64_t channels, tokens, sequences, longest;
  RandomDiagonalSsm ssm;
  Values u, dy;
};

class LongConvBackwardTest : public testing::TestWithParam<std::tuple<ConvMethod, Direction>> {
 protected:
  ConvMethod method() const { return std::get<0>(GetParam()); }
  Direction direction() const { return std::get<1>(GetParam()); }

  Results Backward(const Problem& p, const Problem::Options& options = {}) const {
    return p.Backward(method(), direction(), options);
  }

  // The bound of a sum of products x_i y_i: that of an FFT, or that of `terms` roundings.
  double Bound(const Problem& p, int64_t terms, double magnitude, double norms) const {
    if (method() != ConvMethod::kFft) return Gamma(terms + 2) * magnitude;
    return kUnitRoundoff * (3 * std::log2(double(FftPlan::LengthFor(p.tokens))) + 3) * norms;
  }

  void ExpectInputs(const Problem& p, const Values& du) const {
    const LongConvKernels weights(p.ssm.parameters(), p.longest);
    for (int64_t c = 0; c < p.channels; ++c) {
      const float* taps = weights.Taps(c / (p.channels / weights.heads()));
      for (int64_t b = 0; b < p.sequences; ++b) {
        double k2 = 0, dy2 = 0;
        for (int64_t t = 0; t < p.tokens; ++t) {
          k2 += double{taps[-t]} * double{taps[-t]};
          dy2 += std::pow(p.At(p.dy, direction(), b, t, c), 2);
        }
        for (int64_t t = 0; t < p.tokens; t += 1 + p.tokens / 50) {
          double sum = 0, magnitude = 0;
          for (int64_t l = 0; t + l < p.tokens; ++l) {
            const double product = double{taps[-l]} * p.At(p.dy, direction(), b, t + l, c);
            sum += product;
            magnitude += std::abs(product);
          }
          ASSERT_NEAR(p.At(du, direction(), b, t, c), sum,
                      Bound(p, p.tokens, magnitude, std::sqrt(k2 * dy2)))
              << "channel " << c << " time " << t << " of " << p.tokens;
        }
      }
    }
  }

  void ExpectKernels(const Problem& p, const std::vector<double>& dk) const {
    const int64_t heads = p.ssm.parameters().heads;
    const int64_t head_channels = p.channels / heads;
    ASSERT_EQ(dk.size(), size_t(heads * p.longest));
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t l = 0; l < p.longest; l += 1 + p.tokens / 50) {
        double sum = 0, magnitude = 0, norms = 0;
        for (int64_t i = 0; i < p.sequences * head_channels; ++i) {
          const int64_t b = i / head_channels;
          const int64_t c = h * head_channels + i % head_channels;
          double u2 = 0, dy2 = 0;
          for (int64_t t = 0; t < p.tokens; ++t) {
            u2 += std::pow(p.At(p.u, direction(), b, t, c), 2);
            dy2 += std::pow(p.At(p.dy, direction(), b, t, c), 2);
            if (t < l) continue;
            const double product =
                p.At(p.dy, direction(), b, t, c) * p.At(p.u, direction(), b, t - l, c);
            sum += product;
            magnitude += std::abs(product);
          }
          norms += std::sqrt(u2 * dy2);
        }
        ASSERT_NEAR(dk[size_t(h * p.longest + l)], sum,
                    Bound(p, p.tokens + p.sequences, magnitude, norms))
            << "head " << h << " point " << l << " of " << p.tokens;
      }
    }
  }

  void Expect(const Problem& p, const Results& results) const {
    ExpectInputs(p, results.du);
    ExpectKernels(p, results.dk);
  }
};

INSTANTIATE_TEST_SUITE_P(Methods, LongConvBackwardTest,
                         testing::Combine(testing::Values(ConvMethod::kToeplitz, ConvMethod::kFft),
                                          testing::Values(Direction::kForward,
                                                          Direction::kBackward)));

TEST_P(LongConvBackwardTest, EveryLength) {
  for (const int64_t tokens : {1, 2, 3, 7, 8, 9, 31, 63, 64, 65, 100, 128, 200, 256, 300}) {
    for (const int64_t heads : {1, 16}) {
      const Problem p(16, heads, tokens);
      Expect(p, Backward(p));
    }
  }
}

TEST_P(LongConvBackwardTest, EveryLayoutOfHeads) {
  for (const auto& [channels, heads] : {std::pair<int64_t, int64_t>{1, 1},
                                        {5, 1},
                                        {37, 1},
                                        {3, 3},
                                        {20, 4},
                                        {34, 2},
                                        {48, 3},
                                        {40, 40}}) {
    const Problem p(channels, heads, 45, 3);
    Expect(p, Backward(p));
  }
}

TEST_P(LongConvBackwardTest, ManySequencesOnAnyNumberOfThreads) {
  for (const int64_t heads : {1, 36}) {
    const Problem p(36, heads, 29, 21);
    const Results one = Backward(p, {.threads = 1});
    Expect(p, one);
    const Results three = Backward(p, {.threads = 3});
    EXPECT_EQ(three.du, one.du);
    EXPECT_EQ(three.dk, one.dk);
  }
}

TEST_P(LongConvBackwardTest, StridedMisalignedRows) {
  const Problem p(37, 37, 50, 2);
  const Results expected = Backward(p);
  for (const int64_t gap : {1, 3, 16}) {
    const Results results = Backward(p, {.gap = gap});
    EXPECT_EQ(results.du, expected.du);
    EXPECT_EQ(results.dk, expected.dk);
  }
}

TEST_P(LongConvBackwardTest, AddsToInputsAndAlwaysToKernels) {
  const Problem p(18, 18, 33, 2);
  const Results once = Backward(p);
  const Results added = Backward(p, {.add = true});
  for (size_t i = 0; i < once.du.size(); ++i) EXPECT_EQ(added.du[i], 1 + once.du[i]);
  EXPECT_EQ(added.dk, once.dk);
  const Results twice = Backward(p, {.calls = 2});
  EXPECT_EQ(twice.du, once.du);
  for (size_t i = 0; i < once.dk.size(); ++i) EXPECT_EQ(twice.dk[i], 2 * once.dk[i]);
}

TEST_P(LongConvBackwardTest, InputsMayBeUnwanted) {
  const Problem p(18, 1, 33, 2);
  const Results results = Backward(p, {.wanted = false});
  EXPECT_EQ(results.du, Values(results.du.size(), 1.0f));
  EXPECT_EQ(results.dk, Backward(p).dk);
}

TEST_P(LongConvBackwardTest, SequencesShorterThanTheKernel) {
  Problem p(20, 20, 40, 2);
  p.longest = 90;
  Expect(p, Backward(p));
}

TEST(LongConvKernelGradientsTest, ZeroBeginsAgain) {
  LongConvKernelGradients sums({4, 4}, 3);
  const Values dk(3 * kTileChannels, 1.0f);
  sums.Add(0, dk);
  sums.Zero();
  sums.Add(0, dk);
  EXPECT_EQ(sums.OfHeads(), std::vector<double>(12, 1.0));
}

}  // namespace
}  // namespace hippodrome::cpu::long_conv_backward_test
