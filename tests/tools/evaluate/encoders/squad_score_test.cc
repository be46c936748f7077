#include "tools/evaluate/encoders/squad_score.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace hippodrome::squad_score_test {
namespace {

constexpr double kRounding = 1e-12;  // a few roundings of numbers up to 100

// Answers and predictions in which the two scripts differ: the last gold answers have one without
// words, and the sixth prediction is one.
const std::vector<SquadQuestion> kQuestions = {
    {.answers = {"the Eiffel Tower", "Eiffel"}, .id = "1"},
    {.answers = {"red"}, .id = "2"},
    {.answers = {"blue"}, .id = "3"},
    {.answers = {"the", "dog"}, .id = "4"},
    {.answers = {}, .id = "5"},
    {.answers = {}, .id = "6"},
    {.answers = {}, .id = "7"},
};
const std::vector<SquadPrediction> kPredictions = {
    {"Eiffel Tower!", -3}, {"a red book", -1}, {"", 0.5}, {"the", -2.5}, {"", 2}, {"the", 1},
    {"green", 3},
};

nlohmann::json ReportOf(size_t questions, SquadVersion version) {
  std::vector<const SquadQuestion*> pointers;
  for (size_t i = 0; i < questions; ++i) pointers.push_back(&kQuestions[i]);
  return SquadReport(pointers, std::span(kPredictions).first(questions), version);
}

// The figures are what the published scripts say of these predictions.
TEST(SquadScoreTest, AgreesWithVersion1) {
  const nlohmann::json report = ReportOf(4, SquadVersion::k1);
  EXPECT_EQ(report["questions"], 4);
  EXPECT_NEAR(report["exact_match"], 50, kRounding);
  EXPECT_NEAR(report["f1"], 41.666666666666664, kRounding);
  EXPECT_FALSE(report.contains("best_f1"));
}

TEST(SquadScoreTest, AgreesWithVersion2) {
  const nlohmann::json report = ReportOf(7, SquadVersion::k2);
  EXPECT_NEAR(report["exact_match"], 42.857142857142854, kRounding);
  EXPECT_NEAR(report["f1"], 52.38095238095237, kRounding);
  EXPECT_EQ(report["with_answer"]["questions"], 4);
  EXPECT_NEAR(report["with_answer"]["exact_match"], 25, kRounding);
  EXPECT_NEAR(report["with_answer"]["f1"], 41.666666666666664, kRounding);
  EXPECT_EQ(report["without_answer"]["questions"], 3);
  EXPECT_NEAR(report["without_answer"]["exact_match"], 66.66666666666667, kRounding);
  EXPECT_NEAR(report["best_exact"], 57.142857142857146, kRounding);
  EXPECT_EQ(report["best_exact_thresh"], -3);
  EXPECT_NEAR(report["best_f1"], 66.66666666666667, kRounding);
  EXPECT_EQ(report["best_f1_thresh"], -1);
}

TEST(SquadScoreTest, FiguresHaveIntervals) {
  const nlohmann::json report = ReportOf(7, SquadVersion::k2);
  for (const char* metric : {"exact_match", "f1", "best_exact", "best_f1"}) {
    const nlohmann::json& interval = report["intervals"][metric];
    EXPECT_LT(interval["low"], report[metric]) << metric;
    EXPECT_GT(interval["high"], report[metric]) << metric;
  }
  EXPECT_GT(report["without_answer"]["intervals"]["f1"]["standard_error"], 0);
}

TEST(SquadScoreTest, WithoutAnAnswerAnywhereNoneIsBest) {
  const SquadQuestion impossible;
  const SquadQuestion* const questions[] = {&impossible, &impossible};
  const SquadPrediction predictions[] = {{"x", -7}, {"", -9}};
  const nlohmann::json report = SquadReport(questions, predictions, SquadVersion::k2);
  EXPECT_EQ(report["with_answer"]["questions"], 0);
  EXPECT_EQ(report["with_answer"]["f1"], 0);
  EXPECT_EQ(report["exact_match"], 50);
  EXPECT_EQ(report["best_exact"], 100);
  EXPECT_EQ(report["best_exact_thresh"], 0);
}

}  // namespace
}  // namespace hippodrome::squad_score_test
