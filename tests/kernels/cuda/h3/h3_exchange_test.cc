#include "kernels/cuda/h3/h3_exchange.h"

#include "tests/cuda_on_cpu/device_array.h"
#include "tests/kernels/cuda/h3/h3_layer.h"

namespace hippodrome::cuda::h3_exchange_test {
namespace {

constexpr DType kTypes[] = {DType::kF32, DType::kBF16};

// Constant of the error bound of what follows a prompt; see h3_prefill_test.cc.
double OutputConstant(DType dtype) { return dtype == DType::kBF16 ? 80 : 2; }

// The last N raw k of `tokens` tokens, oldest first, [d, N].
Values LastKeys(const Values& qkv, int64_t d, int64_t taps) {
  const int64_t tokens = static_cast<int64_t>(qkv.size()) / (3 * d);
  Values keys(static_cast<size_t>(d * taps));
  for (int64_t i = 0; i < d * taps; ++i) {
    const int64_t t = tokens - taps + i % taps;
    if (t >= 0) keys[static_cast<size_t>(i)] = qkv[static_cast<size_t>(t * 3 * d + d + i / taps)];
  }
  return keys;
}

TEST(H3ExchangeTest, NamesItsArrays) {
  H3Layer layer({.d_model = 12, .head_dim = 3, .d_state = 10});
  const std::vector<StateArray> arrays = layer.state().arrays();
  ASSERT_EQ(arrays.size(), 3);
  EXPECT_EQ(arrays[0].name, "shift_inputs");
  EXPECT_EQ(arrays[0].shape, (std::vector<int64_t>{12, 10}));
  EXPECT_EQ(arrays[1].name, "modes");
  EXPECT_EQ(arrays[1].shape, (std::vector<int64_t>{3, 3, 4, 5, 2}));
  EXPECT_EQ(arrays[2].name, "pending");
}

// Exactly, whatever waits and wherever the ring stands.
TEST(H3ExchangeTest, ExportsTheLastInputs) {
  for (const DType dtype : kTypes) {
    for (const int64_t slots : {int64_t{3}, kLookaheadSlots}) {
      for (const int64_t prompt : {0, 1, 63, 64, 90}) {
        H3Layer layer({.d_model = 5}, dtype, slots);
        const Values qkv = layer.RandomTokens(prompt + 20, 3);
        if (prompt > 0) layer.Sequence(H3Sequence, RowsOf(qkv, 15, 0, prompt), {2});
        EXPECT_EQ(layer.Exchanged(2)[0], LastKeys(RowsOf(qkv, 15, 0, prompt), 5, 64));
        for (int64_t t = prompt; t < prompt + 20; ++t) {
          layer.Step(H3Step, RowsOf(qkv, 15, t, t + 1), {2});
          EXPECT_EQ(layer.Exchanged(2)[0], LastKeys(RowsOf(qkv, 15, 0, t + 1), 5, 64));
        }
      }
    }
  }
}

// A prompt and some steps; export; import elsewhere, over what another sequence left; go on there.
void ExpectTravel(const H3Shape& shape, DType dtype, int64_t slots, int64_t prompt, int64_t steps) {
  SCOPED_TRACE(testing::Message() << Name(dtype) << " slots " << slots << " prompt " << prompt
                                  << " steps " << steps << " head " << shape.head_dim);
  constexpr int64_t kRest = 40;
  const int64_t tokens = prompt + steps + kRest;
  H3Layer layer(shape, dtype, slots);
  const int64_t row = 3 * layer.d();
  const Values qkv = layer.RandomTokens(tokens, 3);
  const H3Expectation expected = ExpectedH3(layer.parameters(), qkv);
  if (prompt > 0) layer.Sequence(H3Sequence, RowsOf(qkv, row, 0, prompt), {1});
  for (int64_t t = prompt; t < prompt + steps; ++t) {
    layer.Step(H3Step, RowsOf(qkv, row, t, t + 1), {1});
  }
  for (uint32_t t = 0; t < 21; ++t) layer.Step(H3Step, layer.RandomTokens(1, t), {2});
  const StateValues state = layer.Exchanged(1);
  layer.Import(2, state, prompt + steps);
  EXPECT_EQ(layer.Exchanged(2), state);
  EXPECT_EQ(layer.Exchanged(1), state);  // exporting changes nothing

  for (int64_t t = prompt + steps; t < tokens; ++t) {
    Values token = RowsOf(qkv, row, t, t + 1);
    token.insert(token.end(), token.begin(), token.begin() + row);
    const Values o = layer.Step(H3Step, token, {1, 2});
    const Values stayed = RowsOf(o, layer.d(), 0, 1);
    const Values travelled = RowsOf(o, layer.d(), 1, 2);
    layer.ExpectOutput(expected, t, tokens, travelled, OutputConstant(dtype));
    // Only where tokens wait does a settled state round otherwise.
    if (!layer.state().looks_ahead()) {
      ASSERT_EQ(stayed, travelled) << t;
    }
  }
}

TEST(H3ExchangeTest, StatesTravel) {
  for (const DType dtype : kTypes) {
    for (const int64_t slots : {int64_t{3}, kLookaheadSlots}) {
      for (auto [prompt, steps] : {std::pair{0, 0}, {0, 7}, {5, 0}, {64, 16}, {300, 29}}) {
        ExpectTravel({.d_model = 5}, dtype, slots, prompt, steps);
      }
      ExpectTravel({.d_model = 6, .head_dim = 2, .d_state = 10}, dtype, slots, 12, 5);
    }
  }
}

// A sequence goes on by prefill as well.
TEST(H3ExchangeTest, SequencesGoOnFromImports) {
  for (const DType dtype : kTypes) {
    for (const int64_t slots : {int64_t{3}, kLookaheadSlots}) {
      H3Layer layer({.d_model = 16}, dtype, slots);
      const Values qkv = layer.RandomTokens(160, 3);
      const H3Expectation expected = ExpectedH3(layer.parameters(), qkv);
      for (int64_t t = 0; t < 21; ++t) layer.Step(H3Step, RowsOf(qkv, 48, t, t + 1), {0});
      layer.Import(2, layer.Exchanged(0), 21);
      layer.ExpectOutput(expected, 21, 160,
                         layer.Sequence(H3Sequence, RowsOf(qkv, 48, 21, 160), {2}),
                         OutputConstant(dtype));
    }
  }
}

// Nothing of what the slot held is left, not even NaN.
TEST(H3ExchangeTest, ImportsOverAnything) {
  for (const int64_t slots : {int64_t{3}, kLookaheadSlots}) {
    H3Layer layer({.d_model = 5}, DType::kF32, slots);
    layer.Sequence(H3Sequence, layer.RandomTokens(21, 1), {0});
    for (const H3Slots::Place& place : layer.state().Places(2)) {
      if (place.bytes == 0) continue;
      ASSERT_EQ(cudaMemset(place.begin, 0xff, static_cast<size_t>(place.bytes)), cudaSuccess);
    }
    layer.Import(2, layer.Exchanged(0), 21);
    const Values token = layer.RandomTokens(1, 2);
    EXPECT_EQ(layer.Step(H3Step, token, {2}), layer.Step(H3Step, token, {0}));
    EXPECT_EQ(layer.Exchanged(2), layer.Exchanged(0));
  }
}

TEST(H3ExchangeTest, DoesNotDependOnTheOrderOfThreads) {
  H3Layer layer({.d_model = 40}, DType::kBF16, kLookaheadSlots);
  for (uint32_t t = 0; t < 21; ++t) layer.Step(H3Step, layer.RandomTokens(1, t), {1});
  const StateValues state = layer.Exchanged(1);
  cuda_on_cpu::InEveryOrder([&] {
    EXPECT_EQ(layer.Exchanged(1), state);
    layer.Import(2, state, 21);
    EXPECT_EQ(layer.Exchanged(2), state);
  });
}

}  // namespace
}  // namespace hippodrome::cuda::h3_exchange_test
