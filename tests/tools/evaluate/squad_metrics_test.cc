#include "tools/evaluate/squad_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hippodrome::squad_metrics_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr double kRounding = 1e-12;  // a few roundings of numbers up to 1

TEST(SquadMetricsTest, NormalisesAsThePublishedScript) {
  EXPECT_THAT(AnswerWords("The  Eiffel-Tower, (Paris)!"), ElementsAre("eiffeltower", "paris"));
  EXPECT_THAT(AnswerWords("A an THE"), IsEmpty());
  EXPECT_THAT(AnswerWords("theatre than a.m."), ElementsAre("theatre", "than", "am"));
  EXPECT_THAT(AnswerWords("t_h_e x\tan\ny"), ElementsAre("x", "y"));
}

TEST(SquadMetricsTest, KnowsUnicode) {
  EXPECT_THAT(AnswerWords("\u00C9COLE\u00A0\u03A9"), ElementsAre("\u00E9cole", "\u03C9"));
  // Punctuation beyond ASCII stays, but an article ends at it.
  EXPECT_THAT(AnswerWords("the\u2013best \u201Ca\u201D"),
              ElementsAre("\u2013best", "\u201C", "\u201D"));
  EXPECT_THAT(AnswerWords("\xFFx\xE2\x82"), ElementsAre("x"));
}

AnswerScore Score(std::string_view prediction, std::vector<std::string> gold) {
  return ScoreAnswer(prediction, gold);
}

TEST(SquadMetricsTest, BagsOfWords) {
  const AnswerScore score = Score("the cat cat sat", {"a cat sat down here"});
  EXPECT_EQ(score.exact, 0);
  EXPECT_NEAR(score.f1, 2 * 2.0 / (3 + 4), kRounding);
  EXPECT_EQ(Score("dog", {"cat"}).f1, 0);
}

TEST(SquadMetricsTest, TheBestGoldAnswerCounts) {
  const AnswerScore score = Score("24\u201310", {"Denver", "24\u201310!", "24\u201310 by far"});
  EXPECT_EQ(score.exact, 1);
  EXPECT_EQ(score.f1, 1);
  EXPECT_NEAR(Score("Denver Broncos", {"Broncos", "Carolina"}).f1, 2.0 / 3, kRounding);
}

TEST(SquadMetricsTest, NoAnswer) {
  EXPECT_EQ(Score("", {}).exact, 1);
  EXPECT_EQ(Score("", {}).f1, 1);
  EXPECT_EQ(Score("x", {}).f1, 0);
  EXPECT_EQ(Score("", {"x"}).f1, 0);
  // A gold answer without words counts only where there is no other.
  EXPECT_EQ(Score("", {"the", "x"}).exact, 0);
  EXPECT_EQ(Score("", {"the"}).exact, 1);
}

}  // namespace
}  // namespace hippodrome::squad_metrics_test
