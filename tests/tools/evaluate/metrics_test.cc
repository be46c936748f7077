#include "tools/evaluate/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace hippodrome::metrics_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Classes = std::vector<int64_t>;
using Values = std::vector<double>;

constexpr double kRounding = 1e-12;  // a few roundings of numbers up to 1

// TP 3, FP 1, FN 2, TN 4.
const Classes kPredictions = {1, 1, 1, 1, 0, 0, 0, 0, 0, 0};
const Classes kLabels = {1, 1, 1, 0, 1, 1, 0, 0, 0, 0};

TEST(MetricsTest, OfAConfusionMatrixByHand) {
  EXPECT_NEAR(Accuracy(kPredictions, kLabels), 0.7, kRounding);
  EXPECT_NEAR(F1(kPredictions, kLabels, 1), 6.0 / 9, kRounding);
  EXPECT_NEAR(F1(kPredictions, kLabels, 0), 8.0 / 11, kRounding);
  EXPECT_NEAR(MacroF1(kPredictions, kLabels, 2), (6.0 / 9 + 8.0 / 11) / 2, kRounding);
  EXPECT_NEAR(MatthewsCorrelation(kPredictions, kLabels), 10 / std::sqrt(600.0), kRounding);
}

// The examples in scikit-learn's documentation of matthews_corrcoef and f1_score.
TEST(MetricsTest, AgreesWithPublishedExamples) {
  EXPECT_NEAR(MatthewsCorrelation(Classes{1, 0, 1, 1}, Classes{1, 1, 1, 0}), -1.0 / 3, kRounding);
  EXPECT_NEAR(MacroF1(Classes{0, 2, 1, 0, 0, 1}, Classes{0, 1, 2, 0, 1, 2}, 3), 0.8 / 3, kRounding);
}

// c 5, s 6, predicted 3, 2, 1, meant 2, 2, 2: (30 - 12) / sqrt((36 - 14) (36 - 12)).
TEST(MetricsTest, MatthewsCorrelationOfThreeClasses) {
  EXPECT_NEAR(MatthewsCorrelation(Classes{0, 0, 1, 1, 2, 0}, Classes{0, 0, 1, 1, 2, 2}),
              18 / std::sqrt(22.0 * 24), kRounding);
  EXPECT_EQ(MatthewsCorrelation(Classes{2, 2}, Classes{2, 0}), 0);
}

// Those in SciPy's documentation of pearsonr and spearmanr.
TEST(MetricsTest, CorrelationsAgreeWithPublishedExamples) {
  EXPECT_NEAR(Pearson(Values{1, 2, 3, 4, 5, 6, 7}, Values{10, 9, 2.5, 6, 4, 3, 2}),
              -0.8285038835884279, kRounding);
  EXPECT_NEAR(Spearman(Values{1, 2, 3, 4, 5}, Values{5, 6, 7, 8, 7}), 0.8207826816681233,
              kRounding);
}

TEST(MetricsTest, EqualValuesShareTheMeanOfTheirRanks) {
  // Ranks 1, 2.5, 2.5, 4 against 1, 2, 3, 4: cov 4.5, variances 4.5 and 5.
  EXPECT_NEAR(Spearman(Values{-7, 0, 0, 9}, Values{0.1, 0.2, 0.3, 70}), 4.5 / std::sqrt(22.5),
              kRounding);
  EXPECT_NEAR(Spearman(Values{3, 2, 1}, Values{1, 10, 100}), -1, kRounding);
}

TEST(MetricsTest, WhatIsUndefinedIsZero) {
  EXPECT_EQ(Accuracy({}, {}), 0);
  EXPECT_EQ(F1(Classes{0, 0}, Classes{0, 0}, 1), 0);
  EXPECT_EQ(MatthewsCorrelation(Classes{1, 1}, Classes{0, 1}), 0);
  EXPECT_EQ(MatthewsCorrelation({}, {}), 0);
  EXPECT_EQ(Pearson(Values{1, 1}, Values{1, 2}), 0);
  EXPECT_EQ(Spearman({}, {}), 0);
}

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

TEST(SquadMetricsTest, Version1TakesEveryGoldAnswer) {
  const std::vector<std::string> gold = {"the", "x"};
  EXPECT_EQ(ScoreAnswer("", gold, SquadVersion::k1).exact, 1);
  EXPECT_EQ(ScoreAnswer("", gold, SquadVersion::k1).f1, 0);  // no word in common
  EXPECT_EQ(ScoreAnswer("x", gold, SquadVersion::k1).f1, 1);
}

}  // namespace
}  // namespace hippodrome::metrics_test
