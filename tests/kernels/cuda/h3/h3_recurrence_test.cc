#include "kernels/cuda/h3/h3_step.h"

#include "tests/kernels/cuda/h3/h3_layer.h"

namespace hippodrome::cuda::h3_recurrence_test {
namespace {

constexpr DType kTypes[] = {DType::kF32, DType::kBF16};

void ExpectSequence(const H3Shape& shape, int64_t tokens, int64_t gap = 0) {
  for (const DType dtype : kTypes) {
    H3Layer layer(shape, dtype);
    const Values qkv = layer.RandomTokens(tokens, 7);
    const Values o = layer.Sequence(H3Recurrence, qkv, {1}, gap);
    const H3Expectation expected = ExpectedH3(layer.parameters(), qkv);
    layer.ExpectOutput(expected, 0, tokens, o);
    layer.ExpectState(expected, 1);
  }
}

void ExpectSteps(const H3Shape& shape, int64_t tokens) {
  for (const DType dtype : kTypes) {
    H3Layer layer(shape, dtype);
    const Values qkv = layer.RandomTokens(tokens, 7);
    const H3Expectation expected = ExpectedH3(layer.parameters(), qkv);
    for (int64_t t = 0; t < tokens; ++t) {
      const Values token = RowsOf(qkv, 3 * layer.d(), t, t + 1);
      layer.ExpectOutput(expected, t, tokens, layer.Step(H3RecurrenceStep, token, {0}));
    }
    layer.ExpectState(expected, 0);
  }
}

TEST(H3RecurrenceTest, EveryLength) {
  for (const int64_t tokens : {1, 2, 15, 16, 17, 63, 64, 65, 150}) {
    SCOPED_TRACE(tokens);
    ExpectSequence({.d_model = 9}, tokens);
  }
}

TEST(H3RecurrenceTest, EveryStateSize) {
  for (const int64_t d_state : {2, 6, 20, 64, 128}) {
    SCOPED_TRACE(d_state);
    ExpectSequence({.d_model = 5, .d_state = d_state}, 40);
    ExpectSteps({.d_model = 5, .d_state = d_state}, 20);
  }
  ExpectSequence({.d_model = 10, .n_ssm = 3, .discretization = Discretization::kZoh}, 20);
}

TEST(H3RecurrenceTest, EveryHeadDimension) {
  for (const H3OutputOrder order : {H3OutputOrder::kHeadD2, H3OutputOrder::kD2Head}) {
    for (auto [d, head_dim] : {std::pair{6, 2}, {12, 3}, {16, 4}, {24, 8}, {22, 11}}) {
      SCOPED_TRACE(head_dim);
      const H3Shape shape = {
          .d_model = d, .head_dim = head_dim, .d_state = 8, .output_order = order};
      ExpectSequence(shape, 21);
      ExpectSteps(shape, 9);
    }
  }
}

TEST(H3RecurrenceTest, AcceptsStridedMisalignedRows) {
  for (const int64_t gap : {1, 3}) {
    ExpectSequence({.d_model = 7}, 20, gap);
    ExpectSequence({.d_model = 12, .head_dim = 2}, 20, gap);
  }
}

TEST(H3RecurrenceTest, ChunksMakeTheWhole) {
  for (const int64_t head_dim : {1, 2}) {
    constexpr int64_t kTokens = 140;
    H3Layer layer({.d_model = 4, .head_dim = head_dim});
    const Values qkv = layer.RandomTokens(kTokens, 5);
    const H3Expectation expected = ExpectedH3(layer.parameters(), qkv);
    for (const int64_t chunk : {1, 3, 16, 70}) {
      SCOPED_TRACE(chunk);
      layer.state().Reset(layer.device(), 0);
      layer.set_position(0, 0);
      for (int64_t t = 0; t < kTokens; t += chunk) {
        const Values part = RowsOf(qkv, 3 * layer.d(), t, std::min(t + chunk, kTokens));
        layer.ExpectOutput(expected, t, kTokens, layer.Sequence(H3Recurrence, part, {0}));
      }
      layer.ExpectState(expected, 0);
    }
  }
}

TEST(H3RecurrenceTest, SequencesAreIndependentBitForBit) {
  for (const int64_t head_dim : {1, 4}) {
    constexpr int64_t kTokens = 19;
    const H3Shape shape = {.d_model = 12, .head_dim = head_dim, .d_state = 10};
    H3Layer batch(shape, DType::kBF16, 4);
    H3Layer single(shape, DType::kBF16, 4);
    const int64_t d = shape.d_model;
    for (uint32_t turn = 0; turn < 2; ++turn) {
      const Values qkv = batch.RandomTokens(4 * kTokens, turn);
      const Indices slots = {2, -1, 0, 3};
      const Values o = batch.Sequence(H3Recurrence, qkv, slots);
      for (const int64_t b : {0, 2, 3}) {
        const Values alone =
            single.Sequence(H3Recurrence, RowsOf(qkv, 3 * d, b * kTokens, (b + 1) * kTokens),
                            {slots[static_cast<size_t>(b)]});
        EXPECT_EQ(alone, RowsOf(o, d, b * kTokens, (b + 1) * kTokens)) << b;
      }
    }
    EXPECT_EQ(batch.Export(1).diagonal, Values(static_cast<size_t>(d * head_dim * 10)));
  }
}

TEST(H3RecurrenceTest, StepsGiveWhatSequencesGive) {
  H3Layer layer({.d_model = 6, .head_dim = 2, .d_state = 6}, DType::kF32, 2);
  const Values qkv = layer.RandomTokens(12, 3);
  const Values whole = layer.Sequence(H3Recurrence, qkv, {0});
  for (int64_t t = 0; t < 12; ++t) {
    const Values o = layer.Step(H3RecurrenceStep, RowsOf(qkv, 18, t, t + 1), {1});
    for (size_t c = 0; c < 6; ++c) EXPECT_NEAR(o[c], whole[static_cast<size_t>(t) * 6 + c], 1e-5);
  }
}

TEST(H3RecurrenceTest, InertRowsOfAStepAreZero) {
  H3Layer layer({.d_model = 6, .head_dim = 2});
  const Values o = layer.Step(H3RecurrenceStep, layer.RandomTokens(3, 1), {-1, 1, -1});
  for (size_t i = 0; i < o.size(); ++i) EXPECT_EQ(o[i] != 0, i / 6 == 1) << i;
}

}  // namespace
}  // namespace hippodrome::cuda::h3_recurrence_test
