#include <cuda_runtime.h>

#include "tests/kernels/cuda/h3/h3_layer.h"

namespace hippodrome::cuda::h3_scan_test {
namespace {

constexpr DType kTypes[] = {DType::kBF16, DType::kF32};

// Constants of the error bounds in roundings of float; about twice the largest error seen. With
// bf16 activations the scan rounds its operands to 11 bits, but sums in f32.
double OutputConstant(DType dtype) { return dtype == DType::kBF16 ? 80 : 1; }
double StateConstant(DType dtype) { return dtype == DType::kBF16 ? 450 : 1.5; }

void ExpectScan(const H3Shape& shape, DType dtype, int64_t tokens, int64_t gap = 0) {
  SCOPED_TRACE(testing::Message() << "T " << tokens << " d " << shape.d_model << " N "
                                  << shape.d_state << " " << Name(dtype) << " gap " << gap);
  H3Layer layer(shape, dtype);
  const Values qkv = layer.RandomTokens(tokens, 3);
  const Values o = layer.Sequence(H3Scan, qkv, {1}, gap);
  const H3Expectation expected = ExpectedH3(layer.parameters(), qkv);
  layer.ExpectOutput(expected, 0, tokens, o, OutputConstant(dtype));
  layer.ExpectState(expected, 1, StateConstant(dtype));
}

TEST(H3ScanTest, EveryLength) {
  for (const int64_t tokens : {1, 15, 16, 17, 64, 255, 256, 257, 511, 512, 513, 520, 1300}) {
    ExpectScan({.d_model = 16}, DType::kBF16, tokens);
    ExpectScan({.d_model = 2}, DType::kF32, tokens);
  }
}

TEST(H3ScanTest, EveryShape) {
  for (const DType dtype : kTypes) {
    for (const int64_t d : {1, 9, 17, 33}) ExpectScan({.d_model = d}, dtype, 70);
    for (const int64_t d_state : {2, 6, 20, 64}) {
      ExpectScan({.d_model = 3, .d_state = d_state}, dtype, 530);
    }
    ExpectScan({.d_model = 8, .n_ssm = 2, .discretization = Discretization::kZoh}, dtype, 100);
  }
}

TEST(H3ScanTest, AcceptsStridedMisalignedRows) {
  for (const int64_t gap : {1, 3, 8, 16}) {
    ExpectScan({.d_model = 16}, DType::kBF16, 530, gap);
    ExpectScan({.d_model = 24}, DType::kBF16, 40, gap);
    ExpectScan({.d_model = 9}, DType::kF32, 20, gap);
  }
}

TEST(H3ScanTest, ChunksMakeTheWhole) {
  constexpr int64_t kTokens = 600;
  for (const DType dtype : kTypes) {
    const H3Shape shape = {.d_model = dtype == DType::kBF16 ? 16 : 2};
    for (const int64_t chunk : {61, 512}) {
      SCOPED_TRACE(chunk);
      H3Layer layer(shape, dtype);
      const Values qkv = layer.RandomTokens(kTokens, 3);
      const H3Expectation expected = ExpectedH3(layer.parameters(), qkv);
      Values o;
      for (int64_t t = 0; t < kTokens; t += chunk) {
        const Values rows = RowsOf(qkv, 3 * layer.d(), t, std::min(t + chunk, kTokens));
        const Values part = layer.Sequence(H3Scan, rows, {0});
        o.insert(o.end(), part.begin(), part.end());
      }
      layer.ExpectOutput(expected, 0, kTokens, o, OutputConstant(dtype));
      layer.ExpectState(expected, 0, StateConstant(dtype));
    }
  }
}

TEST(H3ScanTest, FollowsAndPrecedesSingleTokens) {
  for (const DType dtype : kTypes) {
    H3Layer layer({.d_model = 3}, dtype);
    const Values qkv = layer.RandomTokens(140, 3);
    const H3Expectation expected = ExpectedH3(layer.parameters(), qkv);
    layer.Sequence(H3Recurrence, RowsOf(qkv, 9, 0, 50), {1});
    const Values o = layer.Sequence(H3Scan, RowsOf(qkv, 9, 50, 130), {1});
    layer.ExpectOutput(expected, 50, 140, o, OutputConstant(dtype));
    for (int64_t t = 130; t < 140; ++t) {
      const Values one = layer.Step(H3Step, RowsOf(qkv, 9, t, t + 1), {1});
      layer.ExpectOutput(expected, t, 140, one, OutputConstant(dtype));
    }
    layer.ExpectState(expected, 1, StateConstant(dtype));
  }
}

// An empty state is promised, so what the slot held does not matter, even NaN.
TEST(H3ScanTest, StartsAnewAtPositionZero) {
  for (const DType dtype : kTypes) {
    H3Layer layer({.d_model = 5}, dtype);
    const Values qkv = layer.RandomTokens(30, 3);
    const Values first = layer.Sequence(H3Scan, qkv, {1});
    const PublishedState state = layer.Export(1);
    layer.Sequence(H3Scan, Values(15 * 40, NAN), {1});
    layer.set_position(1, 0);
    EXPECT_EQ(layer.Sequence(H3Scan, qkv, {1}), first);
    EXPECT_EQ(layer.Export(1).diagonal, state.diagonal);
    EXPECT_EQ(layer.Export(1).shift, state.shift);
  }
}

// More sequences than blocks that share them, and inert ones in between; one launch.
TEST(H3ScanTest, BatchRowsAreIndependentBitForBit) {
  constexpr int32_t kTokens = 530;
  for (const DType dtype : kTypes) {
    const H3Shape shape = {.d_model = dtype == DType::kBF16 ? 16 : 2};
    for (const Indices& slots : {Indices{2, 0}, {-1, 1, -1}, {3, -1, 0, 2, 1}}) {
      const auto count = static_cast<int64_t>(slots.size());
      H3Layer batch(shape, dtype, 4);
      H3Layer single(shape, dtype, 4);
      const Values qkv = batch.RandomTokens(count * kTokens, 3);
      cuda_on_cpu::ResetLaunchCounts();
      const Values o = batch.Sequence(H3Scan, qkv, slots);
      EXPECT_EQ(cuda_on_cpu::LaunchCount("h3_scan"), 1);
      EXPECT_EQ(cuda_on_cpu::LaunchCount(), 1);
      for (int64_t b = 0; b < count; ++b) {
        const int32_t slot = slots[static_cast<size_t>(b)];
        if (slot < 0) continue;
        const Values rows = RowsOf(qkv, 3 * batch.d(), b * kTokens, (b + 1) * kTokens);
        EXPECT_EQ(single.Sequence(H3Scan, rows, {slot}),
                  RowsOf(o, batch.d(), b * kTokens, (b + 1) * kTokens));
        EXPECT_EQ(batch.Export(slot).diagonal, single.Export(slot).diagonal);
        EXPECT_EQ(batch.Export(slot).shift, single.Export(slot).shift);
      }
    }
  }
}

TEST(H3ScanTest, InertSequencesTouchNoState) {
  H3Layer layer({.d_model = 16}, DType::kBF16);
  layer.Sequence(H3Scan, layer.RandomTokens(20, 1), {0});
  const PublishedState state = layer.Export(0);
  layer.Sequence(H3Scan, layer.RandomTokens(60, 2), {-1, 1, -1});
  EXPECT_EQ(layer.Export(0).diagonal, state.diagonal);
  EXPECT_EQ(layer.Export(0).shift, state.shift);
}

// binary16 ends at 65504 and loses bits below 2^-14; scaling keeps away from both.
TEST(H3ScanTest, TakesActivationsOfEveryMagnitude) {
  for (const float magnitude : {1e-9f, 1e-3f, 1e4f, 1e9f}) {
    SCOPED_TRACE(magnitude);
    H3Layer layer({.d_model = 16}, DType::kBF16);
    Values qkv = layer.RandomTokens(600, 3);
    for (float& x : qkv) x = ToFloat(ToBF16(x * magnitude));
    const H3Expectation expected = ExpectedH3(layer.parameters(), qkv);
    const Values o = layer.Sequence(H3Scan, qkv, {1});
    layer.ExpectOutput(expected, 0, 600, o, OutputConstant(DType::kBF16));
    const PublishedState state = layer.Export(1);
    for (size_t i = 0; i < state.diagonal.size(); ++i) {
      const double scale = 0x1p-24 * 16 * expected.state_scale[i / 2];
      ASSERT_NEAR(state.diagonal[i], expected.diagonal[i], StateConstant(DType::kBF16) * scale);
    }
  }
}

// The state lasts while the inputs are gone.
TEST(H3ScanTest, RemembersALoudBeginning) {
  H3Layer layer({.d_model = 16}, DType::kBF16);
  Values qkv = layer.RandomTokens(1100, 3);
  for (size_t i = 0; i < qkv.size(); ++i) {
    const bool gate = i % 48 < 16;
    if (i >= 48 * 500 && !gate) qkv[i] = i < 48 * 1050 ? 0 : ToFloat(ToBF16(qkv[i] * 1e-4f));
  }
  const H3Expectation expected = ExpectedH3(layer.parameters(), qkv);
  layer.ExpectOutput(expected, 0, 1100, layer.Sequence(H3Scan, qkv, {1}),
                     OutputConstant(DType::kBF16));
  layer.ExpectState(expected, 1, StateConstant(DType::kBF16));
}

TEST(H3ScanTest, DoesNotDependOnTheOrderOfThreads) {
  for (const DType dtype : kTypes) {
    H3Layer layer({.d_model = 17}, dtype, 3);
    const Values qkv = layer.RandomTokens(2 * 520, 3);
    const Values forward = layer.Sequence(H3Scan, qkv, {0, 1});
    const PublishedState state = layer.Export(0);
    for (const cuda_on_cpu::ThreadOrder order :
         {cuda_on_cpu::ThreadOrder::kReverse, cuda_on_cpu::ThreadOrder::kShuffled}) {
      cuda_on_cpu::SetThreadOrder(order, 5);
      for (const int32_t slot : {0, 1}) layer.set_position(slot, 0);
      EXPECT_EQ(layer.Sequence(H3Scan, qkv, {0, 1}), forward);
      EXPECT_EQ(layer.Export(0).diagonal, state.diagonal);
    }
    cuda_on_cpu::SetThreadOrder(cuda_on_cpu::ThreadOrder::kForward);
  }
}

TEST(H3ScanTest, NeedsItsSharedMemory) {
  const H3Layer bf16({.d_model = 2}, DType::kBF16);
  const H3Layer f32({.d_model = 2}, DType::kF32);
  EXPECT_TRUE(CanScan(bf16.constants(), size_t{163} << 10));
  EXPECT_FALSE(CanScan(bf16.constants(), size_t{99} << 10));
  EXPECT_TRUE(CanScan(f32.constants(), size_t{99} << 10));
}

}  // namespace
}  // namespace hippodrome::cuda::h3_scan_test
