#include "tools/top/top_state.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace hippodrome::top_state_test {
namespace {

using std::chrono::seconds;

std::string Tokens(int count) {
  return "hippodrome_generated_tokens_total{model=\"m\"} " + std::to_string(count) + "\n";
}

class TopStateTest : public testing::Test {
 protected:
  void Add(const absl::StatusOr<std::string>& text) {
    ++time_;
    state_.Add(text, TopState::Time(seconds(time_)), std::to_string(time_));
  }

  TopState state_{"a:1"};
  int time_ = 0;
};

TEST_F(TopStateTest, TwoReadingsMakeARate) {
  EXPECT_FALSE(state_.frame().known);
  Add(Tokens(100));
  EXPECT_TRUE(state_.frame().known);
  EXPECT_EQ(state_.frame().figures.new_tokens, std::nullopt);
  EXPECT_TRUE(state_.frame().new_tokens.empty());
  Add(Tokens(150));
  EXPECT_EQ(state_.frame().figures.new_tokens, 50);
  EXPECT_EQ(state_.frame().clock, "2");
  Add(Tokens(170));
  EXPECT_EQ(state_.frame().new_tokens, (History{50, 20}));
}

TEST_F(TopStateTest, AServerThatIsGoneComesBack) {
  Add(Tokens(100));
  Add(Tokens(150));
  Add(absl::UnavailableError("gone"));
  EXPECT_EQ(state_.frame().problem, "gone; trying again");
  EXPECT_EQ(state_.frame().figures.new_tokens, 50);  // the last that is known
  Add(Tokens(5));
  EXPECT_EQ(state_.frame().problem, "");
  EXPECT_EQ(state_.frame().figures.new_tokens, std::nullopt);
  Add(Tokens(7));
  EXPECT_EQ(state_.frame().figures.new_tokens, 2);
  EXPECT_EQ(state_.frame().new_tokens, (History{50, std::nullopt, 2}));
}

TEST_F(TopStateTest, WhatIsNotMetricsIsAProblem) {
  Add(std::string("<html>"));
  EXPECT_NE(state_.frame().problem.find("metrics, line 1"), std::string::npos);
  EXPECT_FALSE(state_.frame().known);
}

TEST_F(TopStateTest, APauseKeepsThePicture) {
  Add(Tokens(100));
  Add(Tokens(150));
  state_.TogglePause();
  Add(Tokens(1000));
  EXPECT_EQ(state_.frame().figures.new_tokens, 50);
  EXPECT_EQ(state_.frame().clock, "2");
  state_.TogglePause();
  Add(Tokens(250));  // two seconds after the last that was seen
  EXPECT_EQ(state_.frame().figures.new_tokens, 50);
}

TEST_F(TopStateTest, TotalsShowAtOnceAndLeaveTheHistory) {
  Add(Tokens(100));
  state_.ToggleTotals();
  EXPECT_EQ(state_.frame().figures.new_tokens, 100);
  Add(Tokens(150));
  EXPECT_EQ(state_.frame().figures.new_tokens, 150);
  EXPECT_EQ(state_.frame().new_tokens, (History{50}));
  state_.ToggleTotals();
  EXPECT_EQ(state_.frame().figures.new_tokens, 50);
}

TEST_F(TopStateTest, TheHistoryEnds) {
  for (int i = 0; i < 400; ++i) Add(Tokens(i));
  EXPECT_EQ(state_.frame().new_tokens.size(), 300);
}

}  // namespace
}  // namespace hippodrome::top_state_test
