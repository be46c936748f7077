#include "tools/evaluate/lm/lm_figures.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tools/evaluate/lm/lm_report.h"

namespace hippodrome::lm_figures_test {
namespace {

const std::vector<size_t> kAll = {0, 1, 2};

TEST(LmFiguresTest, MeansAreOfDocuments) {
  std::vector<LmOutcome> outcomes(3);
  for (size_t i = 0; i < 3; ++i) outcomes[i].means["acc"] = i == 1 ? 1 : 0;
  const FigureOf accuracy = LmFigure("acc", outcomes);
  EXPECT_DOUBLE_EQ(accuracy(kAll), 1.0 / 3);
  EXPECT_DOUBLE_EQ(accuracy(std::vector<size_t>{1, 1}), 1);
}

TEST(LmFiguresTest, F1IsOfAllClasses) {
  std::vector<LmOutcome> outcomes(3);
  for (size_t i = 0; i < 3; ++i) outcomes[i].choices = 3;
  outcomes[1].gold = outcomes[2].gold = 1;
  outcomes[2].best = 1;
  // Class 0: one of two predictions right, all found; 1: right, one of two found; 2: none.
  EXPECT_DOUBLE_EQ(LmFigure("f1", outcomes)(kAll), (2.0 / 3 + 2.0 / 3 + 0) / 3);
}

TEST(LmFiguresTest, PerplexitiesWeighByWhatTheyCount) {
  std::vector<LmOutcome> outcomes(2);
  outcomes[0] = {.log_probability = -6, .words = 1, .bytes = 4, .tokens = 2};
  outcomes[1] = {.log_probability = -2, .words = 3, .bytes = 12, .tokens = 2};
  const std::vector<size_t> both = {0, 1};
  EXPECT_DOUBLE_EQ(LmFigure("word_perplexity", outcomes)(both), std::exp(2));
  EXPECT_DOUBLE_EQ(LmFigure("byte_perplexity", outcomes)(both), std::exp(0.5));
  EXPECT_DOUBLE_EQ(LmFigure("token_perplexity", outcomes)(both), std::exp(2));
  EXPECT_DOUBLE_EQ(LmFigure("bits_per_byte", outcomes)(both), 0.5 / std::log(2));
  EXPECT_DOUBLE_EQ(LmFigure("perplexity", outcomes)(both), std::exp(4));
}

TEST(LmReportTest, HasGroupsAndDifferences) {
  LmTask task = FindLmTask("blimp").value();
  std::vector<LmOutcome> outcomes(4);
  for (size_t i = 0; i < 4; ++i) {
    outcomes[i].group = i < 2 ? "x" : "y";
    outcomes[i].means["acc"] = i < 3 ? 1 : 0;
  }
  const auto report = LmReport(task, outcomes);
  EXPECT_EQ(report["examples"], 4);
  EXPECT_EQ(report["acc"], 0.75);
  EXPECT_EQ(report["groups"]["x"]["acc"], 1);
  EXPECT_EQ(report["groups"]["y"]["acc"], 0.5);
  EXPECT_LE(report["intervals"]["acc"]["low"], 0.75);
  std::vector<LmOutcome> others = outcomes;
  const auto same = LmComparison(task, outcomes, others)["acc"];
  EXPECT_EQ(same["difference"], 0);
  EXPECT_EQ(same["standard_error"], 0);
  others[0].means["acc"] = 0;
  EXPECT_EQ(LmComparison(task, outcomes, others)["acc"]["difference"], 0.25);
}

}  // namespace
}  // namespace hippodrome::lm_figures_test
