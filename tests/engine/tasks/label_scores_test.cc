#include "engine/tasks/label_scores.h"

#include <gtest/gtest.h>

#include <cmath>

namespace hippodrome::label_scores_test {
namespace {

constexpr float kRounding = 1e-6F;  // a few roundings of numbers up to 1

TEST(LabelScoresTest, SoftmaxOfSeveral) {
  const std::vector<float> logits = {0, std::log(2.0F), std::log(5.0F)};
  const std::vector<float> scores = LabelScores(logits);
  ASSERT_EQ(scores.size(), 3U);
  EXPECT_NEAR(scores[0], 0.125, kRounding);
  EXPECT_NEAR(scores[1], 0.25, kRounding);
  EXPECT_NEAR(scores[2], 0.625, kRounding);
}

TEST(LabelScoresTest, SoftmaxDoesNotOverflow) {
  const std::vector<float> logits = {1e30F, 1e30F, -1e30F};
  EXPECT_EQ(Softmax(logits), (std::vector<float>{0.5, 0.5, 0}));
}

TEST(LabelScoresTest, LogisticFunctionOfOne) {
  const auto score = [](float logit) { return LabelScores(std::span(&logit, 1)).at(0); };
  EXPECT_EQ(score(0), 0.5F);
  EXPECT_NEAR(score(std::log(3.0F)), 0.75, kRounding);
  EXPECT_EQ(score(1000), 1.0F);
  EXPECT_EQ(score(-1000), 0.0F);
}

TEST(LabelScoresTest, NothingGivesNothing) { EXPECT_TRUE(LabelScores({}).empty()); }

}  // namespace
}  // namespace hippodrome::label_scores_test
