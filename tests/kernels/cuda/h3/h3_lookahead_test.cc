#include "kernels/cuda/h3/h3_lookahead.h"

#include "kernels/cuda/h3/h3_step.h"
#include "tests/kernels/cuda/h3/h3_layer.h"

namespace hippodrome::cuda::h3_lookahead_test {
namespace {

constexpr DType kTypes[] = {DType::kF32, DType::kBF16};

// What H3Sequence() does on a state that looks ahead.
void SettledRecurrence(Device& device, const H3SequenceCall& call) {
  H3Settle(device, call);
  H3Recurrence(device, call);
}

// A prompt, and steps after it.
void ExpectContinuation(const H3Shape& shape, int64_t prompt, int64_t steps, int64_t gap = 0) {
  SCOPED_TRACE(prompt);
  for (const DType dtype : kTypes) {
    H3Layer layer(shape, dtype, kLookaheadSlots);
    ASSERT_TRUE(layer.state().looks_ahead());
    const int64_t row = 3 * layer.d();
    const Values qkv = layer.RandomTokens(prompt + steps, 3);
    const H3Expectation expected = ExpectedH3(layer.parameters(), qkv);
    if (prompt > 0) layer.Sequence(SettledRecurrence, RowsOf(qkv, row, 0, prompt), {7}, gap);
    for (int64_t t = prompt; t < prompt + steps; ++t) {
      const Values o = layer.Step(H3Step, RowsOf(qkv, row, t, t + 1), {7}, gap);
      layer.ExpectOutput(expected, t, prompt + steps, o);
    }
    layer.ExpectState(expected, 7);
  }
}

TEST(H3LookaheadTest, MatchesTheRecurrence) {
  ExpectContinuation({.d_model = 6}, 0, 150);
  for (const int64_t d : {1, 31, 33, 40, 66}) ExpectContinuation({.d_model = d}, 0, 35);
  ExpectContinuation({.d_model = 6, .n_ssm = 2, .discretization = Discretization::kZoh}, 0, 40);
}

TEST(H3LookaheadTest, StartsWhereSequencesEnd) {
  for (const int64_t prompt : {1, 2, 15, 16, 17, 31, 47, 64, 77}) {
    ExpectContinuation({.d_model = 5}, prompt, 40);
  }
}

// The state is right whatever is pending.
TEST(H3LookaheadTest, ExportsPendingTokens) {
  for (const int64_t steps : {1, 2, 3, 11, 15, 16, 17, 18}) {
    ExpectContinuation({.d_model = 3}, 5, steps);
  }
}

TEST(H3LookaheadTest, AcceptsStridedMisalignedRows) {
  for (const int64_t gap : {1, 3}) ExpectContinuation({.d_model = 34}, 3, 20, gap);
}

// Runs of tokens, by steps where they are negative.
TEST(H3LookaheadTest, SequencesContinueSteps) {
  for (const DType dtype : kTypes) {
    H3Layer layer({.d_model = 4}, dtype, kLookaheadSlots);
    constexpr int64_t kTokens = 200;
    const Values qkv = layer.RandomTokens(kTokens, 9);
    const H3Expectation expected = ExpectedH3(layer.parameters(), qkv);
    int64_t t = 0;
    for (const int64_t run : {-5, 3, -1, 40, -30, 1, -16, 16, -17, 2, -40, 29}) {
      for (int64_t i = 0; i < -run; ++i, ++t) {
        const Values o = layer.Step(H3Step, RowsOf(qkv, 12, t, t + 1), {2});
        layer.ExpectOutput(expected, t, kTokens, o);
      }
      if (run < 0) continue;
      const Values o = layer.Sequence(SettledRecurrence, RowsOf(qkv, 12, t, t + run), {2});
      layer.ExpectOutput(expected, t, kTokens, o);
      t += run;
    }
    ASSERT_EQ(t, kTokens);
    layer.ExpectState(expected, 2);
  }
}

// Sequences start their blocks at different steps, come and go, and fill several blocks of threads.
void ExpectIndependentRows(const H3Shape& shape) {
  constexpr int32_t kSequences = 19;
  const int64_t d = shape.d_model;
  H3Layer batch(shape, DType::kBF16, kLookaheadSlots);
  H3Layer single(shape, DType::kBF16, kLookaheadSlots);
  Indices slots;
  for (int32_t b = 0; b < kSequences; ++b) {
    slots.push_back((b * 5 + 3) % kSequences);
    const Values prompt = batch.RandomTokens(1 + b % 7, 100 + static_cast<uint32_t>(b));
    EXPECT_EQ(batch.Sequence(SettledRecurrence, prompt, {slots.back()}),
              single.Sequence(SettledRecurrence, prompt, {slots.back() + 1}));
  }
  for (uint32_t t = 0; t < 40; ++t) {
    const Values qkv = batch.RandomTokens(kSequences, t);
    Indices rows = slots;
    for (size_t b = 0; b < rows.size(); ++b) {
      if ((b + t) % 5 == 0) rows[b] = -1;
    }
    const Values o = batch.Step(H3Step, qkv, rows);
    for (int64_t b = 0; b < kSequences; ++b) {
      const int32_t slot = rows[static_cast<size_t>(b)];
      if (slot < 0) {
        ASSERT_EQ(RowsOf(o, d, b, b + 1), Values(static_cast<size_t>(d)));
        continue;
      }
      // In another slot.
      const Values alone = single.Step(H3Step, RowsOf(qkv, 3 * d, b, b + 1), {slot + 1});
      ASSERT_EQ(alone, RowsOf(o, d, b, b + 1)) << b;
    }
  }
}

// Rows of 16 bytes and others come to shared memory in different ways.
TEST(H3LookaheadTest, BatchRowsAreIndependentBitForBit) {
  ExpectIndependentRows({.d_model = 35});
  ExpectIndependentRows({.d_model = 40});
}

TEST(H3LookaheadTest, CopiesContinueAlike) {
  H3Layer layer({.d_model = 6}, DType::kBF16, kLookaheadSlots);
  layer.Sequence(SettledRecurrence, layer.RandomTokens(9, 1), {4});
  for (uint32_t t = 0; t < 20; ++t) layer.Step(H3Step, layer.RandomTokens(1, t), {4});
  layer.state().Copy(layer.device(), 4, 30);
  layer.set_position(30, layer.position(4));
  EXPECT_EQ(layer.Export(30).diagonal, layer.Export(4).diagonal);
  EXPECT_EQ(layer.Export(30).shift, layer.Export(4).shift);
  for (uint32_t t = 0; t < 20; ++t) {
    Values token = layer.RandomTokens(1, t);
    token.insert(token.end(), token.begin(), token.begin() + 18);
    const Values o = layer.Step(H3Step, token, {4, 30});
    EXPECT_EQ(RowsOf(o, 6, 0, 1), RowsOf(o, 6, 1, 2));
  }
}

TEST(H3LookaheadTest, SlotsAreUsedAgain) {
  H3Layer layer({.d_model = 6}, DType::kF32, kLookaheadSlots);
  const auto run = [&] {
    Values out;
    for (uint32_t t = 0; t < 20; ++t) {
      const Values o = layer.Step(H3Step, layer.RandomTokens(1, t), {4});
      out.insert(out.end(), o.begin(), o.end());
    }
    return out;
  };
  const Values first = run();
  run();
  layer.state().Reset(layer.device(), 4);
  layer.set_position(4, 0);
  EXPECT_EQ(layer.Export(4).diagonal, Values(6 * 64));
  EXPECT_EQ(run(), first);
}

TEST(H3LookaheadTest, InertSequencesAreLeftAlone) {
  H3Layer layer({.d_model = 6}, DType::kF32, kLookaheadSlots);
  for (uint32_t t = 0; t < 3; ++t) layer.Step(H3Step, layer.RandomTokens(2, t), {0, 31});
  const PublishedState before = layer.Export(31);
  layer.Sequence(SettledRecurrence, layer.RandomTokens(8, 1), {-1, 0});
  EXPECT_EQ(layer.Export(31).diagonal, before.diagonal);
}

TEST(H3LookaheadTest, OnlyLayersThatCanLookAhead) {
  EXPECT_FALSE(H3Layer({.d_model = 4}, DType::kF32, kLookaheadSlots - 1).state().looks_ahead());
  EXPECT_FALSE(H3Layer({.d_model = 4, .head_dim = 2}, DType::kF32, 40).state().looks_ahead());
  EXPECT_FALSE(H3Layer({.d_model = 4, .d_state = 32}, DType::kF32, 40).state().looks_ahead());
}

TEST(H3LookaheadTest, BlocksShareWhatTheNextProductReads) {
  H3Layer layer({.d_model = 66}, DType::kBF16, kLookaheadSlots);
  constexpr int64_t kBytes = 100'000;
  const std::shared_ptr<void> weights = AllocateZeroed(layer.device(), kBytes);
  Indices slots;
  for (int32_t slot = 0; slot < 11; ++slot) slots.push_back(slot);
  layer.device().Expect(weights.get(), kBytes);
  layer.Step(H3Step, layer.RandomTokens(std::ssize(slots), 5), slots);
  EXPECT_EQ(cuda_on_cpu::LastPrefetches(),
            (std::vector<cuda_on_cpu::Prefetched>{{weights.get(), kBytes}}));
}

TEST(H3LookaheadTest, CountsItsBytes) {
  H3Layer layer({.d_model = 40}, DType::kBF16, kLookaheadSlots);
  // What a plain state has, 16 rows of two f32 and a bf16, and two bases, in multiples of 256.
  EXPECT_EQ(layer.state().bytes_per_slot(), 40 * (64 * 2 + 32 * 8) + 6656);
}

}  // namespace
}  // namespace hippodrome::cuda::h3_lookahead_test
