#include "engine/state/saved_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

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
      {"layers.0.arrays: 1", [](auto& state) { state.layers[0].arrays.pop_back(); }},
      {"layers.2.modes: 15 numbers, expected 16",
       [](auto& state) { state.layers[2].arrays[1].pop_back(); }},
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

TEST(CheckStateTest, APositionTableIsALimit) {
  StateLayout layout = SmallStateLayout();
  layout.longest = 5;
  EXPECT_TRUE(CheckState(SmallState(5), layout).ok());
  EXPECT_FALSE(CheckState(SmallState(6), layout).ok());
}

}  // namespace
}  // namespace hippodrome::saved_state_test
