#include "engine/state/rewind.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/status.h"
#include "tests/testing/saved_states.h"

namespace hippodrome::rewind_test {
namespace {

using testing::StartsWith;

std::vector<int32_t> Between(const SavedState& state, int64_t from, int64_t to) {
  return {state.tokens.begin() + from, state.tokens.begin() + to};
}

TEST(RewindTest, ACheckpointIsTheStateOfThen) {
  const SavedState state = SmallStateWith(30, {8, 16, 24});
  const Rewound rewound = Rewind(state, 16).value();
  EXPECT_TRUE(rewound.tokens.empty());
  ASSERT_TRUE(rewound.state.has_value());
  const SavedState& then = *rewound.state;
  EXPECT_TRUE(CheckState(then, SmallStateLayout()).ok());
  EXPECT_EQ(then.position, 16);
  EXPECT_EQ(then.tokens, Between(state, 0, 16));
  EXPECT_EQ(then.prompt_tokens, 15);
  EXPECT_FALSE(then.last_token.has_value());
  EXPECT_EQ(then.seed, state.seed);
  EXPECT_TRUE(then.exact);
  for (const size_t h3 : {0, 2}) {
    EXPECT_EQ(then.layers[h3].arrays, (*state.checkpoints[1].layers)[h3]);
  }
  const std::vector<float>& keys = state.layers[1].keys;
  EXPECT_EQ(then.layers[1].keys, std::vector<float>(keys.begin(), keys.begin() + 16 * 4));
  const std::vector<float>& values = state.layers[1].values;
  EXPECT_EQ(then.layers[1].values, std::vector<float>(values.begin(), values.begin() + 16 * 4));
  ASSERT_EQ(then.checkpoints.size(), 1u);
  EXPECT_EQ(then.checkpoints[0], state.checkpoints[0]);
}

TEST(RewindTest, WhatIsBehindTheCheckpointIsTakenInAgain) {
  const SavedState state = SmallStateWith(30, {8, 16, 24});
  const Rewound rewound = Rewind(state, 19).value();
  ASSERT_TRUE(rewound.state.has_value());
  EXPECT_EQ(rewound.state->position, 16);
  EXPECT_EQ(rewound.tokens, Between(state, 16, 19));
  EXPECT_FALSE(rewound.state->exact);
}

TEST(RewindTest, WhatWasNotExactDoesNotBecomeSo) {
  SavedState state = SmallStateWith(30, {16});
  state.exact = false;
  EXPECT_FALSE(Rewind(state, 16).value().state->exact);
}

TEST(RewindTest, BeforeTheFirstCheckpointItIsFromNothing) {
  const SavedState state = SmallStateWith(30, {8});
  const Rewound rewound = Rewind(state, 7).value();
  EXPECT_FALSE(rewound.state.has_value());
  EXPECT_EQ(rewound.tokens, Between(state, 0, 7));
  EXPECT_FALSE(Rewind(state, 0).value().state.has_value());
  EXPECT_TRUE(Rewind(state, 0).value().tokens.empty());
}

TEST(RewindTest, TheStateItselfStaysAsItIs) {
  const SavedState state = SmallStateWith(30, {8, 16});
  const Rewound rewound = Rewind(state, 30).value();
  EXPECT_EQ(rewound.state, state);
  EXPECT_TRUE(rewound.tokens.empty());
}

TEST(RewindTest, RefusesWhatItDoesNotHave) {
  SavedState state = SmallStateWith(30, {8, 16});
  for (const int64_t position : {int64_t{-1}, int64_t{31}, INT64_MAX, INT64_MIN}) {
    const absl::Status status = Rewind(state, position).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << position;
    EXPECT_THAT(Message(status),
                StartsWith("position: " + std::to_string(position) + ", expected 0 to 30"));
  }
  state.tokens.clear();
  EXPECT_EQ(Rewind(state, 16).value().state->position, 16);
  EXPECT_TRUE(Rewind(state, 16).value().state->tokens.empty());
  EXPECT_TRUE(Rewind(state, 0).ok());
  for (const int64_t position : {7, 17}) {
    const absl::Status status = Rewind(state, position).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << position;
    EXPECT_THAT(Message(status), StartsWith("position: the "));
  }
}

}  // namespace
}  // namespace hippodrome::rewind_test
