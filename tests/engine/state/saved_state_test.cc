#include "engine/state/saved_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <numeric>

#include "engine/base/status.h"
#include "kernels/cpu_instruction_set.h"
#include "kernels/make_backend.h"
#include "tests/reference/reference_backend.h"
#include "tests/testing/saved_states.h"

namespace hippodrome::saved_state_test {
namespace {

TEST(ArithmeticTest, NamesWhatDecidesAboutLastBits) {
  const auto cpu = MakeCpuBackend({.threads = 1});
  EXPECT_EQ(Arithmetic(*cpu, DType::kBF16), std::string("cpu ") + CpuInstructionSet() + " bf16");
  EXPECT_EQ(Arithmetic(*cpu, DType::kF32), std::string("cpu ") + CpuInstructionSet() + " f32");
  EXPECT_EQ(Arithmetic(*cpu, DType::kF32, 128, DType::kBF16),
            std::string("cpu ") + CpuInstructionSet() + " f32 window 128 h3-state bf16");
  const auto reference = MakeReferenceBackend();
  EXPECT_EQ(Arithmetic(*reference, DType::kF32), "reference f32");
}

absl::Status Check(const std::function<void(SavedState&)>& change) {
  SavedState state = SmallState(5);
  change(state);
  return CheckState(state, SmallStateLayout());
}

TEST(CheckStateTest, TakesAStateOfTheModel) {
  EXPECT_TRUE(Check([](SavedState&) {}).ok());
  EXPECT_TRUE(Check([](SavedState& state) { state.tokens.clear(); }).ok());
  EXPECT_TRUE(Check([](SavedState& state) { state.last_token.reset(); }).ok());
}

TEST(CheckStateTest, AnotherModelIsAnotherKindOfError) {
  const absl::Status other = Check([](SavedState& state) { state.model[0] = 'f'; });
  EXPECT_TRUE(absl::IsFailedPrecondition(other)) << other;
  EXPECT_THAT(Message(other), testing::StartsWith("model: "));
}

TEST(CheckStateTest, NamesWhatDoesNotFit) {
  const std::vector<std::pair<std::string, std::function<void(SavedState&)>>> changes = {
      {"position: 0, expected 1 to 2147483647", [](auto& state) { state.position = 0; }},
      {"position: 2147483648", [](auto& state) { state.position = int64_t{1} << 31; }},
      {"tokens: 5 numbers, expected 6", [](auto& state) { state.position = 6; }},
      {"tokens: 4 numbers, expected 5", [](auto& state) { state.tokens.pop_back(); }},
      {"prompt_tokens: 6, expected 0 to 5", [](auto& state) { state.prompt_tokens = 6; }},
      {"tokens: 50, expected 0 to 49", [](auto& state) { state.tokens[2] = 50; }},
      {"tokens: -1", [](auto& state) { state.tokens[4] = -1; }},
      {"last_token: 50", [](auto& state) { state.last_token = 50; }},
      {"layers: 2 numbers, expected 3", [](auto& state) { state.layers.pop_back(); }},
      {"layers.0.arrays: 2", [](auto& state) { state.layers[0].arrays.pop_back(); }},
      {"layers.2.modes: 15 numbers, expected 16",
       [](auto& state) { state.layers[2].arrays[1].pop_back(); }},
      {"layers.2.pending: 16 numbers, expected 20",
       [](auto& state) { state.layers[2].arrays[2].resize(16); }},
      {"pending: 6 tokens, expected at most 5 at position 5",
       [](auto& state) { state.layers[0].arrays[2].resize(24); }},
      {"layers.1.keys: 21 numbers, expected 20",
       [](auto& state) { state.layers[1].keys.push_back(0); }},
      {"layers.0.values: 1 numbers, expected 0",
       [](auto& state) { state.layers[0].values.push_back(0); }},
  };
  for (const auto& [message, change] : changes) {
    const absl::Status status = Check(change);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << message;
    EXPECT_THAT(Message(status), testing::StartsWith(message));
  }
}

TEST(CheckStateTest, NamesTheCheckpointThatDoesNotFit) {
  const std::vector<std::pair<std::string, std::vector<int64_t>>> positions = {
      {"", {1, 29}},
      {"checkpoints: 30, expected 9 to 29", {8, 30}},
      {"checkpoints: 0, expected 1 to 29", {0}},
      {"checkpoints: 8, expected 9 to 29", {8, 8}},
      {"checkpoints: 8, expected 17 to 29", {16, 8}},
  };
  for (const auto& [message, at] : positions) {
    EXPECT_EQ(Message(CheckState(SmallStateWith(30, at), SmallStateLayout())), message);
  }
  std::vector<int64_t> many(kMaxCheckpoints + 1);
  std::iota(many.begin(), many.end(), 1);
  EXPECT_EQ(Message(CheckState(SmallStateWith(100, many), SmallStateLayout())),
            "checkpoints: 65, expected at most 64");
  SavedState state = SmallStateWith(30, {8, 16});
  std::vector<LayerArrays> layers = *state.checkpoints[1].layers;
  layers[2][1].pop_back();
  state.checkpoints[1].layers = std::make_shared<const std::vector<LayerArrays>>(layers);
  EXPECT_EQ(Message(CheckState(state, SmallStateLayout())),
            "checkpoints.1.layers.2.modes: 15 numbers, expected 16");
  layers.pop_back();
  state.checkpoints[1].layers = std::make_shared<const std::vector<LayerArrays>>(layers);
  EXPECT_EQ(Message(CheckState(state, SmallStateLayout())),
            "checkpoints.1.layers: 2 numbers, expected 3");
}

TEST(CheckStateTest, CheckpointsNeedAllRows) {
  StateLayout layout = SmallStateLayout();
  layout.window = 64;
  SavedState state = SmallStateWith(300, {8});
  EXPECT_TRUE(CheckState(state, layout).ok());
  state.first_row = 64;
  state.layers[1].keys.resize(236 * 4);
  state.layers[1].values.resize(236 * 4);
  EXPECT_EQ(Message(CheckState(state, layout)),
            "checkpoints: expected none: the rows that they need were dropped");
  state.checkpoints.clear();
  EXPECT_TRUE(CheckState(state, layout).ok());
}

TEST(SavedStateTest, CountsItsBytes) {
  const int64_t arrays = 2 * (16 + 16) * 4;
  const int64_t pending = 2 * 6 * 4 * 4;  // at position 30
  EXPECT_EQ(BytesOf(SmallState(30)), 30 * 4 + arrays + pending + 2 * 30 * 4 * 4);
  EXPECT_EQ(BytesOf(SmallStateWith(30, {8, 16})), BytesOf(SmallState(30)) + 2 * arrays);
}

TEST(SavedStateTest, GoesOnExactlyWhereNothingWasRounded) {
  SavedState state = SmallState(5);
  EXPECT_TRUE(GoesOnExactly(state, state.arithmetic));
  EXPECT_FALSE(GoesOnExactly(state, "cuda bf16"));
  state.lossy = true;
  EXPECT_FALSE(GoesOnExactly(state, state.arithmetic));
  state.lossy = false;
  state.exact = false;
  EXPECT_FALSE(GoesOnExactly(state, state.arithmetic));
}

TEST(CheckStateTest, APositionTableIsALimit) {
  StateLayout layout = SmallStateLayout();
  layout.longest = 5;
  EXPECT_TRUE(CheckState(SmallState(5), layout).ok());
  EXPECT_FALSE(CheckState(SmallState(6), layout).ok());
}

}  // namespace
}  // namespace hippodrome::saved_state_test
