#include "tests/cuda_on_cpu/device_array.h"
#include "tests/kernels/cuda/conv/long_conv_problem.h"

namespace hippodrome::cuda::long_conv_toeplitz_test {
namespace {

constexpr DType kTypes[] = {DType::kBF16, DType::kF32};
constexpr Direction kDirections[] = {Direction::kForward, Direction::kBackward};

// Two bf16 terms of a kernel err by 2^-16 of it; three lose no more than a rounding of f32. Sums
// are f32.
void ExpectToeplitz(const LongConvCase& c, size_t stride = 1) {
  SCOPED_TRACE(Describe(c));
  LongConvProblem problem(c);
  cuda_on_cpu::ResetLaunchCounts();
  const Values y = problem.Run(LongConvToeplitz);
  EXPECT_EQ(cuda_on_cpu::LaunchCount("long_conv_toeplitz"), 1);
  const double kernel = c.dtype == DType::kBF16 ? 0x1p-16 : 4 * kUnitRoundoff;
  problem.Expect(
      y, [&](const auto& e) { return (kernel + Gamma(c.tokens + 8)) * e.terms; }, stride);
}

// A case for both types and directions.
void ExpectEverywhere(LongConvCase c, size_t stride = 1) {
  for (const DType dtype : kTypes) {
    for (const Direction direction : kDirections) {
      c.dtype = dtype;
      c.direction = direction;
      ExpectToeplitz(c, stride);
    }
  }
}

TEST(LongConvToeplitzTest, EveryLength) {
  for (const int64_t tokens : {1, 2, 15, 16, 17, 31, 33, 63, 64, 65, 127, 128, 129, 300}) {
    ExpectEverywhere({.tokens = tokens, .channels = 8}, 3);
  }
}

TEST(LongConvToeplitzTest, EveryWidth) {
  for (const int64_t channels : {1, 3, 63, 64, 65, 72, 130}) {
    ExpectEverywhere({.tokens = 40, .channels = channels, .sequences = 2}, 7);
  }
}

TEST(LongConvToeplitzTest, ChannelsHaveTheKernelOfTheirHead) {
  ExpectEverywhere({.tokens = 50, .channels = 24, .heads = 3}, 1);
  ExpectEverywhere({.tokens = 50, .channels = 130, .heads = 2}, 5);
  ExpectEverywhere({.tokens = 20, .channels = 6, .heads = 6}, 1);
}

TEST(LongConvToeplitzTest, AcceptsStridedMisalignedRows) {
  for (const int64_t gap : {1, 3, 8}) {
    ExpectEverywhere({.tokens = 70, .channels = 24, .sequences = 3, .gap = gap}, 5);
  }
}

TEST(LongConvToeplitzTest, TakesFewerTokensThanTheWeightsAreMadeFor) {
  ExpectEverywhere({.tokens = 70, .channels = 8, .sequences = 2, .more = 100}, 1);
}

TEST(LongConvToeplitzTest, ManyTokens) { ExpectEverywhere({.tokens = 700, .channels = 8}, 509); }

TEST(LongConvToeplitzTest, DoesNotDependOnTheOrderOfThreads) {
  for (const DType dtype : kTypes) {
    for (const Direction direction : kDirections) {
      LongConvProblem problem(
          {.dtype = dtype, .tokens = 150, .channels = 70, .direction = direction});
      const Values expected = problem.Run(LongConvToeplitz);
      cuda_on_cpu::InEveryOrder([&] { EXPECT_EQ(problem.Run(LongConvToeplitz), expected); });
    }
  }
}

}  // namespace
}  // namespace hippodrome::cuda::long_conv_toeplitz_test
