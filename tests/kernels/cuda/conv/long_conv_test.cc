// The contract of Backend::LongConv, whatever computes it.
#include <cuda_runtime.h>

#include "tests/kernels/cuda/conv/long_conv_problem.h"

namespace hippodrome::cuda::long_conv_test {
namespace {

constexpr size_t kShared = size_t{227} << 10;

TEST(LongConvTest, ShortSequencesAreProductsAndLongOnesThatFillThemTransforms) {
  using enum LongConvMethod;
  for (const int64_t tokens : {1, 128, 384, 640}) {
    EXPECT_EQ(ChooseLongConv(tokens, DType::kBF16, kShared), kToeplitz);
  }
  for (const int64_t tokens : {1, 64, 128}) {
    EXPECT_EQ(ChooseLongConv(tokens, DType::kF32, kShared), kToeplitz);
  }
  for (const int64_t tokens : {512, 1024}) {
    EXPECT_EQ(ChooseLongConv(tokens, DType::kBF16, kShared), kFft);
  }
  for (const int64_t tokens : {2048, 4096, 16384}) {
    for (const DType dtype : {DType::kBF16, DType::kF32}) {
      EXPECT_EQ(ChooseLongConv(tokens, dtype, kShared), kFft);
      EXPECT_EQ(ChooseLongConv(tokens, dtype, size_t{99} << 10), kToeplitz);
    }
  }
  EXPECT_EQ(ChooseLongConv(16385, DType::kF32, kShared), kToeplitz);
}

TEST(LongConvTest, RunsTheMethodOfItsChoice) {
  for (const auto& [tokens, name] :
       {std::pair{100, "long_conv_toeplitz"}, std::pair{1024, "long_conv_fft"}}) {
    LongConvProblem problem({.tokens = tokens, .channels = 2});
    cuda_on_cpu::ResetLaunchCounts();
    problem.Run(LongConv);
    EXPECT_EQ(cuda_on_cpu::LaunchCount(), 1);
    EXPECT_EQ(cuda_on_cpu::LaunchCount(name), 1);
  }
}

// The bounds of the contract, with c as the tests of both methods have it.
TEST(LongConvTest, IsWithinItsBounds) {
  for (const DType dtype : {DType::kBF16, DType::kF32}) {
    for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
      for (const int64_t tokens : {128, 1024}) {
        LongConvProblem problem({.dtype = dtype,
                                 .tokens = tokens,
                                 .channels = 4,
                                 .sequences = 2,
                                 .direction = direction});
        const double operands = dtype == DType::kBF16 ? 0x1p-16 : 0;
        problem.Expect(
            problem.Run(LongConv),
            [&](const auto& e) {
              return 5 * kUnitRoundoff * e.norms + (operands + Gamma(tokens + 8)) * e.terms;
            },
            97);
      }
    }
  }
}

TEST(LongConvTest, SequencesAreIndependentBitForBit) {
  for (const int64_t tokens : {100, 600}) {
    LongConvProblem several({.tokens = tokens, .channels = 9, .sequences = 3});
    LongConvProblem one({.tokens = tokens, .channels = 9});  // the first of them
    const Values all = several.Run(LongConv);
    const Values first = one.Run(LongConv);
    EXPECT_TRUE(std::equal(first.begin(), first.end(), all.begin()));
  }
}

TEST(LongConvTest, TakesNoSequences) {
  LongConvProblem problem({.tokens = 10, .channels = 3, .sequences = 0});
  EXPECT_EQ(problem.Run(LongConv), Values{});
}

TEST(LongConvTest, WeightsGrowAtTheFirstUseOfALength) {
  LongConvProblem problem({.tokens = 700, .channels = 3});
  EXPECT_EQ(problem.constants().longest(), 700);
  const int64_t before = problem.constants().bytes();
  EXPECT_EQ(before, 3 * 701 * 4);  // terms of the kernel
  problem.Run(LongConvFft);
  const int64_t after = problem.constants().bytes();
  EXPECT_GT(after, before);
  problem.Run(LongConvFft);
  EXPECT_EQ(problem.constants().bytes(), after);
}

}  // namespace
}  // namespace hippodrome::cuda::long_conv_test
