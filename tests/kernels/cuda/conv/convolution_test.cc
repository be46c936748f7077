#include "kernels/cuda/conv/convolution.h"

#include "tests/cuda_on_cpu/device_array.h"
#include "tests/kernels/cuda/conv/convolution_problem.h"

namespace hippodrome::cuda::convolution_test {
namespace {

// |error| <= g(n) sum |a b| of the longest sum, a column's or that of a kernel's gradient.
void ExpectDirect(const ConvolutionCase& c) {
  SCOPED_TRACE(Describe(c));
  const ConvolutionProblem problem(c);
  const double roundoff = Gamma(c.tokens * c.sequences * c.columns + 2);
  problem.Expect(problem.Run(ConvolutionMethod::kDirect),
                 [&](const auto& e) { return roundoff * e.terms; });
}

// |error| <= c u log2(L) |a|_2 |b|_2, c about twice the largest seen.
void ExpectTransform(const ConvolutionCase& c, int64_t stride = 1) {
  SCOPED_TRACE(Describe(c));
  const ConvolutionProblem problem(c);
  const double roundoff =
      0.3 * kUnitRoundoff * std::log2(static_cast<double>(std::max<int64_t>(c.tokens, 512)));
  problem.Expect(
      problem.Run(ConvolutionMethod::kFft), [&](const auto& e) { return roundoff * e.norms; },
      stride);
}

TEST(ConvolutionTest, DirectSumsOfEveryLength) {
  for (const int64_t tokens : {1, 2, 7, 8, 9, 31, 33, 70}) {
    for (const int64_t count : {int64_t{1}, int64_t{5}, int64_t{8}, tokens, tokens + 3}) {
      ExpectDirect({.tokens = tokens, .columns = 2, .heads = 2, .count = count});
    }
  }
}

TEST(ConvolutionTest, DirectSumsOfEveryWidth) {
  for (const int64_t heads : {1, 2, 31, 33}) {
    for (const int64_t head_columns : {1, 3, 40}) {
      ExpectDirect({.tokens = 6,
                    .columns = heads * head_columns,
                    .heads = heads,
                    .count = 6,
                    .sequences = 3});
    }
  }
}

TEST(ConvolutionTest, DirectSumsInEveryWay) {
  for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      ExpectDirect({.tokens = 19,
                    .columns = 6,
                    .heads = 2,
                    .count = 12,
                    .sequences = 5,
                    .direction = direction,
                    .dtype = dtype,
                    .gap = 3,
                    .add = true});
    }
  }
}

TEST(ConvolutionTest, TransformsOfEveryLength) {
  for (const int64_t tokens : {1, 300, 512, 513, 1024, 2000}) {
    ExpectTransform({.tokens = tokens, .columns = 1, .heads = 1, .count = tokens + 1},
                    1 + tokens / 20);
  }
}

TEST(ConvolutionTest, LongTransforms) {
  for (const int64_t tokens : {4096, 8192}) {
    ExpectTransform({.tokens = tokens, .columns = 2, .heads = 1, .count = tokens}, tokens / 5);
  }
}

TEST(ConvolutionTest, TransformsOfEveryWidth) {
  for (const int64_t heads : {1, 15, 17}) {
    ExpectTransform(
        {.tokens = 90, .columns = 2 * heads, .heads = heads, .count = 100, .sequences = 3}, 7);
  }
}

TEST(ConvolutionTest, TransformsInEveryWay) {
  for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      ExpectTransform({.tokens = 600,
                       .columns = 6,
                       .heads = 2,
                       .count = 80,
                       .sequences = 3,
                       .direction = direction,
                       .dtype = dtype,
                       .gap = 3,
                       .add = true},
                      13);
    }
  }
}

// No block holds a transform of so many points.
TEST(ConvolutionTest, SumsDirectlyWhatIsTooLong) {
  const ConvolutionCase c = {.tokens = 8200, .count = 8200};
  const ConvolutionProblem problem(c);
  const double roundoff = Gamma(c.tokens + 2);
  problem.Expect(
      problem.Run(ConvolutionMethod::kFastest), [&](const auto& e) { return roundoff * e.terms; },
      999);
}

TEST(ConvolutionTest, ThreadsMayRunInAnyOrder) {
  for (const ConvolutionMethod method : {ConvolutionMethod::kDirect, ConvolutionMethod::kFft}) {
    const ConvolutionProblem problem(
        {.tokens = 40, .columns = 12, .heads = 2, .count = 40, .sequences = 3});
    const SequenceResults expected = problem.Run(method);
    cuda_on_cpu::InEveryOrder([&] { EXPECT_TRUE(problem.Run(method) == expected); });
  }
}

TEST(ConvolutionTest, TransformsWhatIsLongAndFits) {
  const auto transforms = [](const ConvolutionCase& c) {
    cuda_on_cpu::ResetLaunchCounts();
    ConvolutionProblem(c).Run(ConvolutionMethod::kFastest);
    return cuda_on_cpu::LaunchCount("fft_conv") > 0;
  };
  EXPECT_FALSE(transforms({.tokens = 256, .count = 300}));
  EXPECT_FALSE(transforms({.tokens = 300, .count = 64}));
  EXPECT_TRUE(transforms({.tokens = 300, .count = 300}));
  EXPECT_TRUE(CanConvolveByFft(8192, size_t{99} << 10));
  EXPECT_FALSE(CanConvolveByFft(8193, size_t{227} << 10));
}

}  // namespace
}  // namespace hippodrome::cuda::convolution_test
