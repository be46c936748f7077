#include "tools/train/session/run_description.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hippodrome::run_description_test {
namespace {

using testing::HasSubstr;
using testing::Not;

TrainingRun SomeRun() {
  TrainingRun run;
  run.output = "/home/somebody/out";
  run.data.train = {"/home/somebody/data/a.txt", "/home/somebody/data/b.txt"};
  run.data.valid = {"/home/somebody/data/c.txt"};
  run.seed = 3;
  return run;
}

TEST(RunDescriptionTest, HasDataStepsAndLastFigures) {
  const std::vector<MetricsLine> lines = {
      {.step = 5, .values = {{"loss", 5}, {"step_loss", 4.5}}},
      {.step = 5, .values = {{"valid_loss", 4}, {"accuracy", 0.25}}},
      {.step = 10, .values = {{"loss", 3}, {"step_loss", 2.5}}},
      {.step = 10, .values = {{"valid_loss", 2}, {"accuracy", 0.5}}}};
  EXPECT_EQ(DescribeRun(SomeRun(), {.step = 10, .tokens = 640}, lines),
            "A run of `hippodrome train`; `training.json` has all of its file.\n\n"
            "| | |\n"
            "|---|---|\n"
            "| began with | random parameters |\n"
            "| objective | causal_lm |\n"
            "| data | `a.txt`, `b.txt` |\n"
            "| validation data | `c.txt` |\n"
            "| steps | 10 |\n"
            "| tokens | 640 |\n"
            "| seed | 3 |\n"
            "| loss of the last step | 2.5000 |\n"
            "| validation loss | 2.0000 |\n"
            "| validation accuracy | 0.5000 |");
}

TEST(RunDescriptionTest, SaysWhichEvaluationWasTheBest) {
  const std::vector<MetricsLine> lines = {{.step = 5, .values = {{"valid_loss", 1}}},
                                          {.step = 10, .values = {{"valid_loss", 2}}}};
  const TrainingPosition position = {
      .step = 10, .best = BestEvaluation{.step = 5, .figure = -1, .evaluations_since = 1}};
  EXPECT_THAT(DescribeRun(SomeRun(), position, lines),
              testing::AllOf(HasSubstr("| steps | 10 |\n| the model is of step | 5, which has"),
                             HasSubstr("| validation loss | 1.0000 |")));
}

TEST(RunDescriptionTest, LeavesOutWhatThereIsNot) {
  TrainingRun run = SomeRun();
  run.data.valid.clear();
  run.model.from = "/home/somebody/models/first/";
  const std::string text = DescribeRun(run, {.step = 10}, {});
  EXPECT_THAT(text, HasSubstr("| began with | the model `first` |"));
  EXPECT_THAT(text, Not(HasSubstr("validation")));
  EXPECT_THAT(text, Not(HasSubstr("loss")));
  EXPECT_THAT(text, Not(HasSubstr("somebody")));
  run.objective = Objective::kInductionHead;
  run.data.train.clear();
  EXPECT_THAT(DescribeRun(run, {}, {}), HasSubstr("| data | made up by the objective |"));
}

}  // namespace
}  // namespace hippodrome::run_description_test
