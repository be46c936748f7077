#include "kernels/cuda/h3/h3_step.h"

#include "tests/kernels/cuda/h3/h3_layer.h"

namespace hippodrome::cuda::h3_step_test {
namespace {

void ExpectSteps(const H3Shape& shape, int64_t tokens, int64_t gap = 0) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    H3Layer layer(shape, dtype, 1);
    const Values qkv = layer.RandomTokens(tokens, 3);
    const H3Expectation expected = ExpectedH3(layer.parameters(), qkv);
    for (int64_t t = 0; t < tokens; ++t) {
      const Values token = RowsOf(qkv, 3 * layer.d(), t, t + 1);
      layer.ExpectOutput(expected, t, tokens, layer.Step(H3Step, token, {0}, gap));
    }
    layer.ExpectState(expected, 0);
  }
}

TEST(H3StepTest, MatchesTheRecurrence) {
  ExpectSteps({.d_model = 16}, 150);
  for (const int64_t d : {1, 5, 33}) ExpectSteps({.d_model = d}, 70);
  ExpectSteps({.d_model = 10, .n_ssm = 2, .discretization = Discretization::kZoh}, 20);
}

TEST(H3StepTest, TakesEveryLayer) {
  for (const int64_t d_state : {2, 6, 20, 128}) {
    ExpectSteps({.d_model = 3, .d_state = d_state}, 20);
  }
  for (const H3OutputOrder order : {H3OutputOrder::kHeadD2, H3OutputOrder::kD2Head}) {
    for (auto [d, head_dim] : {std::pair{6, 2}, {9, 3}, {24, 8}}) {
      ExpectSteps({.d_model = d, .head_dim = head_dim, .output_order = order}, 12);
    }
  }
}

TEST(H3StepTest, AcceptsStridedMisalignedRows) {
  for (const int64_t gap : {1, 3}) ExpectSteps({.d_model = 18}, 20, gap);
}

TEST(H3StepTest, ContinuesASequence) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const int64_t prompt : {1, 63, 64, 90}) {
      constexpr int64_t kSteps = 10;
      H3Layer layer({.d_model = 5}, dtype);
      const Values qkv = layer.RandomTokens(prompt + kSteps, 3);
      const H3Expectation expected = ExpectedH3(layer.parameters(), qkv);
      layer.Sequence(H3Recurrence, RowsOf(qkv, 15, 0, prompt), {1});
      for (int64_t t = prompt; t < prompt + kSteps; ++t) {
        const Values o = layer.Step(H3Step, RowsOf(qkv, 15, t, t + 1), {1});
        layer.ExpectOutput(expected, t, prompt + kSteps, o);
      }
      layer.ExpectState(expected, 1);
    }
  }
}

// More sequences than one block takes, at positions of their own.
TEST(H3StepTest, BatchRowsAreIndependentBitForBit) {
  constexpr int32_t kSequences = 70;
  const H3Shape shape = {.d_model = 18};
  H3Layer batch(shape, DType::kBF16, kSequences);
  H3Layer single(shape, DType::kBF16, kSequences);
  Indices slots;
  for (int32_t b = 0; b < kSequences; ++b) slots.push_back((b * 29 + 3) % kSequences);
  for (uint32_t t = 0; t < 5; ++t) {
    const Values qkv = batch.RandomTokens(kSequences, t);
    const Values o = batch.Step(H3Step, qkv, slots);
    for (int64_t b = 0; b < kSequences; ++b) {
      const Values alone =
          single.Step(H3Step, RowsOf(qkv, 54, b, b + 1), {slots[static_cast<size_t>(b)]});
      ASSERT_EQ(alone, RowsOf(o, 18, b, b + 1)) << b;
    }
    if (t % 2 == 0) slots[5] = -1 - slots[5];  // Comes and goes, and falls behind.
  }
}

TEST(H3StepTest, InertRowsAreZeroAndTouchNothing) {
  H3Layer layer({.d_model = 18});
  layer.Step(H3Step, layer.RandomTokens(1, 2), {1});
  const PublishedState before = layer.Export(1);
  const Values o = layer.Step(H3Step, layer.RandomTokens(3, 1), {-1, 0, -1});
  for (size_t i = 0; i < o.size(); ++i) EXPECT_EQ(o[i] != 0, i / 18 == 1) << i;
  EXPECT_EQ(layer.Export(1).diagonal, before.diagonal);
  EXPECT_EQ(layer.Export(1).shift, before.shift);
}

}  // namespace
}  // namespace hippodrome::cuda::h3_step_test
