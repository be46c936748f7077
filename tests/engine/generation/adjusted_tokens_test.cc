#include "engine/generation/adjusted_tokens.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

namespace hippodrome::adjusted_tokens_test {
namespace {

using Ids = std::vector<int32_t>;

// The formula of LogitChanges, by token; those that it leaves alone are not there.
std::map<int32_t, LogitAdjustment> ByFormula(const LogitChanges& changes, const Ids& prompt,
                                             const Ids& fresh) {
  std::map<int32_t, LogitAdjustment> adjustments;
  for (const TokenBias& b : changes.bias) adjustments[b.token].addend += b.bias;
  for (const Ids* ids : {&prompt, &fresh}) {
    if (changes.repetition_penalty == 1) break;
    for (const int32_t id : *ids) adjustments[id].repetition = changes.repetition_penalty;
  }
  std::map<int32_t, int> counts;
  for (const int32_t id : fresh) ++counts[id];
  for (const auto& [id, count] : counts) {
    adjustments[id].addend -= changes.presence_penalty;
    adjustments[id].addend -= changes.frequency_penalty * static_cast<float>(count);
  }
  std::erase_if(adjustments,
                [](const auto& a) { return a.second.repetition == 1 && a.second.addend == 0; });
  return adjustments;
}

// What there is does as the formula says, in ascending order, no token twice.
void ExpectFormula(const AdjustedTokens& found, const LogitChanges& changes, const Ids& prompt,
                   const Ids& fresh) {
  auto expected = ByFormula(changes, prompt, fresh);
  int32_t previous = -1;
  for (const LogitAdjustment& a : found.adjustments()) {
    ASSERT_GT(a.token, previous);
    previous = a.token;
    const LogitAdjustment& e = expected[a.token];
    EXPECT_EQ(a.repetition, e.repetition) << "token " << a.token;
    EXPECT_FLOAT_EQ(a.addend, e.addend) << "token " << a.token;
    expected.erase(a.token);
  }
  EXPECT_TRUE(expected.empty()) << "token " << expected.begin()->first << " is missing";
}

TEST(AdjustedTokensTest, WithoutChangesThereIsNothingWhateverComes) {
  AdjustedTokens tokens({}, Ids{1, 2, 2});
  tokens.Append(1);
  tokens.Append(7);
  EXPECT_TRUE(tokens.adjustments().empty());
}

TEST(AdjustedTokensTest, BiasesStandInTheOrderOfTokensAndStay) {
  AdjustedTokens tokens({.bias = {{9, -3}, {2, 5}, {5, 0.5f}}}, Ids{5, 5});
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(tokens.adjustments().size(), 3);
    EXPECT_EQ(tokens.adjustments()[0].token, 2);
    EXPECT_EQ(tokens.adjustments()[0].addend, 5);
    EXPECT_EQ(tokens.adjustments()[1].token, 5);
    EXPECT_EQ(tokens.adjustments()[1].repetition, 1);
    EXPECT_EQ(tokens.adjustments()[2].addend, -3);
    tokens.Append(5);
  }
}

TEST(AdjustedTokensTest, RepetitionIsOfThePromptToo) {
  AdjustedTokens tokens({.repetition_penalty = 1.5f}, Ids{4, 1, 4});
  ASSERT_EQ(tokens.adjustments().size(), 2);
  EXPECT_EQ(tokens.adjustments()[0].token, 1);
  EXPECT_EQ(tokens.adjustments()[1].token, 4);
  tokens.Append(3);
  tokens.Append(4);
  ASSERT_EQ(tokens.adjustments().size(), 3);
  EXPECT_EQ(tokens.adjustments()[1].token, 3);
  for (const LogitAdjustment& a : tokens.adjustments()) {
    EXPECT_EQ(a.repetition, 1.5f);
    EXPECT_EQ(a.addend, 0);
  }
}

TEST(AdjustedTokensTest, PresenceAndFrequencyAreOfNewTokensAlone) {
  AdjustedTokens tokens({.bias = {{3, 10}}, .presence_penalty = 0.5f, .frequency_penalty = 0.25f},
                        Ids{1, 2, 3});
  EXPECT_EQ(tokens.adjustments().size(), 1);
  for (const int32_t token : {3, 8, 3}) tokens.Append(token);
  ASSERT_EQ(tokens.adjustments().size(), 2);
  EXPECT_EQ(tokens.adjustments()[0].addend, 10 - 0.5f - 2 * 0.25f);
  EXPECT_EQ(tokens.adjustments()[1].addend, -0.5f - 0.25f);
  EXPECT_EQ(tokens.adjustments()[1].repetition, 1);
}

TEST(AdjustedTokensTest, AnyChangesOfAnySequenceAreThoseOfTheFormula) {
  std::mt19937 random(5);
  const auto below = [&](uint32_t end) { return static_cast<int32_t>(random() % end); };
  for (int round = 0; round < 50; ++round) {
    LogitChanges changes;
    for (int32_t token = below(4); token < 30; token += 1 + below(9)) {
      changes.bias.push_back({token, static_cast<float>(below(200) - 100)});
    }
    std::shuffle(changes.bias.begin(), changes.bias.end(), random);
    if (round % 2 == 0) changes.repetition_penalty = 0.5f + 0.25f * static_cast<float>(below(6));
    if (round % 3 == 0) changes.presence_penalty = 0.5f * static_cast<float>(below(9) - 4);
    if (round % 5 == 0) changes.frequency_penalty = 0.25f * static_cast<float>(below(17) - 8);
    Ids prompt(below(20)), fresh;
    for (int32_t& id : prompt) id = below(30);
    AdjustedTokens tokens(changes, prompt);
    ExpectFormula(tokens, changes, prompt, fresh);
    for (int i = 0; i < 20; ++i) {
      fresh.push_back(below(30));
      tokens.Append(fresh.back());
    }
    ExpectFormula(tokens, changes, prompt, fresh);
  }
}

}  // namespace
}  // namespace hippodrome::adjusted_tokens_test
