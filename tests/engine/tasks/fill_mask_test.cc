#include "engine/tasks/fill_mask.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace hippodrome::fill_mask_test {
namespace {

constexpr float kRounding = 1e-6F;  // a few roundings of numbers up to 1

std::vector<int32_t> Ids(const std::vector<TokenScore>& tokens) {
  std::vector<int32_t> ids;
  for (const TokenScore& token : tokens) ids.push_back(token.id);
  return ids;
}

// Probabilities 1/10, 2/10, 3/10, 4/10 in another order.
const std::vector<float> kLogits = {std::log(3.0F), 0, std::log(4.0F), std::log(2.0F)};

TEST(FillMaskTest, BestFirstWithProbabilitiesAmongAllTokens) {
  const std::vector<TokenScore> tokens = LikeliestTokens(kLogits, 2);
  ASSERT_EQ(Ids(tokens), (std::vector<int32_t>{2, 0}));
  EXPECT_NEAR(tokens[0].score, 0.4, kRounding);
  EXPECT_NEAR(tokens[1].score, 0.3, kRounding);
}

TEST(FillMaskTest, TargetsLimitTheChoiceButNotTheProbabilities) {
  const std::vector<int32_t> targets = {1, 3, 1};
  const std::vector<TokenScore> tokens = LikeliestTokens(kLogits, 5, targets);
  ASSERT_EQ(Ids(tokens), (std::vector<int32_t>{3, 1}));
  EXPECT_NEAR(tokens[0].score, 0.2, kRounding);
  EXPECT_NEAR(tokens[1].score, 0.1, kRounding);
}

TEST(FillMaskTest, TheSmallestIdAmongEquals) {
  const std::vector<float> logits = {0, 1, 1, 0.0F, -0.0F, 1};
  EXPECT_EQ(Ids(LikeliestTokens(logits, 4)), (std::vector<int32_t>{1, 2, 5, 0}));
  EXPECT_EQ(Ids(LikeliestTokens(logits, int64_t{1} << 60)),
            (std::vector<int32_t>{1, 2, 5, 0, 3, 4}));
}

TEST(FillMaskTest, ABrokenModelDoesNoHarm) {
  const std::vector<float> logits(100, std::numeric_limits<float>::quiet_NaN());
  EXPECT_EQ(LikeliestTokens(logits, 3).size(), 3U);
}

}  // namespace
}  // namespace hippodrome::fill_mask_test
