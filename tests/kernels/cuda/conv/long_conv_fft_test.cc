#include "tests/cuda_on_cpu/device_array.h"
#include "tests/kernels/cuda/conv/long_conv_problem.h"

namespace hippodrome::cuda::long_conv_fft_test {
namespace {

// |error| <= c u log2(L) |K|_2 |u|_2, c about twice the largest seen.
void ExpectFft(const LongConvCase& c, size_t stride = 1) {
  SCOPED_TRACE(Describe(c));
  LongConvProblem problem(c);
  cuda_on_cpu::ResetLaunchCounts();
  const Values y = problem.Run(LongConvFft);
  EXPECT_EQ(cuda_on_cpu::LaunchCount("long_conv_fft"), 1);
  const double roundoff =
      0.3 * kUnitRoundoff * std::log2(static_cast<double>(std::max<int64_t>(c.tokens, 512)));
  problem.Expect(y, [&](const auto& e) { return roundoff * e.norms; }, stride);
}

void ExpectEverywhere(LongConvCase c, size_t stride) {
  for (const DType dtype : {DType::kBF16, DType::kF32}) {
    for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
      c.dtype = dtype;
      c.direction = direction;
      ExpectFft(c, stride);
    }
  }
}

TEST(LongConvFftTest, EveryLength) {
  for (const int64_t tokens : {1, 2, 100, 511, 512, 513, 1024, 1500}) {
    ExpectEverywhere({.tokens = tokens, .channels = 3}, static_cast<size_t>(1 + tokens / 20));
  }
}

TEST(LongConvFftTest, LongLengths) {
  for (const int64_t tokens : {4096, 6000, 16384}) {
    ExpectEverywhere({.tokens = tokens, .channels = 2}, static_cast<size_t>(tokens / 9));
  }
}

TEST(LongConvFftTest, EveryWidth) {
  for (const int64_t channels : {1, 15, 16, 17, 40}) {
    ExpectEverywhere({.tokens = 200, .channels = channels, .sequences = 2, .gap = 3}, 101);
  }
}

TEST(LongConvFftTest, ChannelsHaveTheKernelOfTheirHead) {
  ExpectEverywhere({.tokens = 130, .channels = 24, .heads = 3}, 11);
}

TEST(LongConvFftTest, TakesFewerTokensThanTheWeightsAreMadeFor) {
  ExpectEverywhere({.tokens = 300, .channels = 3, .more = 1000}, 7);
}

TEST(LongConvFftTest, ThreadsMayRunInAnyOrder) {
  LongConvProblem problem({.tokens = 700, .channels = 5});
  const Values expected = problem.Run(LongConvFft);
  cuda_on_cpu::InEveryOrder([&] { EXPECT_EQ(problem.Run(LongConvFft), expected); });
}

TEST(LongConvFftTest, NeedsSharedMemoryForTheTokens) {
  EXPECT_TRUE(CanTransformLongConv(16384, size_t{163} << 10));
  EXPECT_FALSE(CanTransformLongConv(16385, size_t{227} << 10));
  EXPECT_TRUE(CanTransformLongConv(512, size_t{99} << 10));
  EXPECT_FALSE(CanTransformLongConv(513, size_t{99} << 10));
}

}  // namespace
}  // namespace hippodrome::cuda::long_conv_fft_test
