#include "tests/kernels/cuda/h3/h3_layer.h"

namespace hippodrome::cuda::h3_fft_test {
namespace {

// Constants of the error bounds, of roundings of float; about twice the largest error seen.
constexpr double kOutputConstant = 0.25;
constexpr double kStateConstant = 1;

// Shared memory of a block, as devices differ.
constexpr size_t kShared = size_t{227} << 10;
constexpr size_t kLittleShared = size_t{99} << 10;

void ExpectFft(const H3Shape& shape, DType dtype, int64_t tokens, int64_t gap = 0) {
  SCOPED_TRACE(testing::Message() << "T " << tokens << " d " << shape.d_model << " N "
                                  << shape.d_state << " " << Name(dtype) << " gap " << gap);
  H3Layer layer(shape, dtype);
  ASSERT_TRUE(CanTransform(layer.constants(), 0, tokens, kShared));
  const Values qkv = layer.RandomTokens(tokens, 3);
  cuda_on_cpu::ResetLaunchCounts();
  const Values o = layer.Sequence(H3Fft, qkv, {1}, gap);
  EXPECT_EQ(cuda_on_cpu::LaunchCount("h3_fft"), 1);
  const H3Expectation expected = ExpectedH3(layer.parameters(), qkv);
  layer.ExpectOutput(expected, 0, tokens, o, kOutputConstant);
  layer.ExpectState(expected, 1, kStateConstant);
}

TEST(H3FftTest, EveryLength) {
  for (const int64_t tokens : {1, 15, 16, 17, 63, 64, 65, 255, 256, 257, 511, 512, 513, 1024}) {
    ExpectFft({.d_model = 3}, DType::kF32, tokens);
    ExpectFft({.d_model = 2}, DType::kBF16, tokens);
  }
}

TEST(H3FftTest, LongLengths) {
  for (const int64_t tokens : {2000, 4096, 8191, 16384}) {
    ExpectFft({.d_model = 1}, DType::kF32, tokens);
    ExpectFft({.d_model = 2}, DType::kBF16, tokens);
  }
}

TEST(H3FftTest, EveryShape) {
  for (const DType dtype : {DType::kBF16, DType::kF32}) {
    for (const int64_t d : {1, 9, 16, 17, 33}) ExpectFft({.d_model = d}, dtype, 70);
    for (const int64_t d_state : {2, 6, 20, 64}) {
      ExpectFft({.d_model = 3, .d_state = d_state}, dtype, 530);
    }
    ExpectFft({.d_model = 8, .n_ssm = 2, .discretization = Discretization::kZoh}, dtype, 100);
  }
}

TEST(H3FftTest, AcceptsStridedMisalignedRows) {
  for (const int64_t gap : {1, 3, 8}) {
    ExpectFft({.d_model = 5}, DType::kBF16, 300, gap);
    ExpectFft({.d_model = 5}, DType::kF32, 40, gap);
  }
}

TEST(H3FftTest, ManySequencesInOneLaunch) {
  const int64_t tokens = 100;
  H3Layer layer({.d_model = 18}, DType::kF32, 5);
  const Values qkv = layer.RandomTokens(4 * tokens, 3);
  (void)layer.Sequence(H3Fft, qkv, {0, 1, 2, 3});  // makes the spectra
  for (int32_t slot = 0; slot < 4; ++slot) layer.set_position(slot, 0);
  cuda_on_cpu::ResetLaunchCounts();
  const Values o = layer.Sequence(H3Fft, qkv, {4, -1, 0, 2});
  EXPECT_EQ(cuda_on_cpu::LaunchCount(), 1);
  const int32_t slots[] = {4, -1, 0, 2};
  for (int64_t i = 0; i < 4; ++i) {
    if (slots[i] < 0) continue;
    const H3Expectation expected =
        ExpectedH3(layer.parameters(), RowsOf(qkv, 3 * layer.d(), i * tokens, (i + 1) * tokens));
    layer.ExpectOutput(expected, 0, tokens, RowsOf(o, layer.d(), i * tokens, (i + 1) * tokens),
                       kOutputConstant);
    layer.ExpectState(expected, slots[i], kStateConstant);
  }
}

TEST(H3FftTest, StepsGoOnFromTheState) {
  const int64_t tokens = 300;
  H3Layer layer({.d_model = 4});
  const Values qkv = layer.RandomTokens(tokens + 70, 3);
  const int64_t columns = 3 * layer.d();
  (void)layer.Sequence(H3Fft, RowsOf(qkv, columns, 0, tokens), {0});
  Values o;
  for (int64_t t = tokens; t < tokens + 70; ++t) {
    const Values y = layer.Step(H3Step, RowsOf(qkv, columns, t, t + 1), {0});
    o.insert(o.end(), y.begin(), y.end());
  }
  const H3Expectation expected = ExpectedH3(layer.parameters(), qkv);
  layer.ExpectOutput(expected, tokens, tokens + 70, o, kOutputConstant);
  layer.ExpectState(expected, 0, kStateConstant);
}

TEST(H3FftTest, ThreadsMayRunInAnyOrder) {
  for (const cuda_on_cpu::ThreadOrder order :
       {cuda_on_cpu::ThreadOrder::kReverse, cuda_on_cpu::ThreadOrder::kShuffled}) {
    cuda_on_cpu::SetThreadOrder(order, 1);
    for (const int64_t tokens : {200, 1000, 3000}) {
      ExpectFft({.d_model = 2}, DType::kF32, tokens);
    }
  }
  cuda_on_cpu::SetThreadOrder(cuda_on_cpu::ThreadOrder::kForward, 0);
}

TEST(H3FftTest, TakesShortLayersAtTheirBeginning) {
  EXPECT_TRUE(CanTransform(H3Layer({.d_model = 2}).constants(), 0, 16384, kShared));
  EXPECT_FALSE(CanTransform(H3Layer({.d_model = 2}).constants(), 0, 16385, kShared));
  EXPECT_FALSE(CanTransform(H3Layer({.d_model = 2}).constants(), 0, 16384, kLittleShared));
  EXPECT_TRUE(CanTransform(H3Layer({.d_model = 2}).constants(), 0, 256, kLittleShared));
  EXPECT_FALSE(CanTransform(H3Layer({.d_model = 2}).constants(), 1, 10, kShared));
  EXPECT_FALSE(CanTransform(H3Layer({.d_model = 2, .d_state = 128}).constants(), 0, 10, kShared));
  EXPECT_FALSE(CanTransform(H3Layer({.d_model = 2, .head_dim = 2}).constants(), 0, 10, kShared));
}

}  // namespace
}  // namespace hippodrome::cuda::h3_fft_test
