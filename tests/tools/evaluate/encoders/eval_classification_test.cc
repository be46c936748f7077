#include "tests/tools/evaluate/encoders/eval_fixture.h"

namespace hippodrome::eval_classification_test {
namespace {

using EvalClassificationTest = EvalFixture;

TEST_F(EvalClassificationTest, TakesNamesAndNumbers) {
  WriteClassifier({"ham", "spam", "unsure"}, 1);
  const std::string names = directory_.Write("names.tsv", "spam\tThe book.\nham\tRed.\n");
  ASSERT_EQ(Run(EvalClassification, {"classification", "--data", names}), 0) << error_;
  EXPECT_EQ(Result()["accuracy"], 0.5);
  EXPECT_NEAR(Result()["macro_f1"], 2.0 / 3 / 3, 1e-12);
  EXPECT_EQ(Result()["intervals"]["accuracy"]["low"], 0);
  EXPECT_EQ(Result()["intervals"]["accuracy"]["high"], 1);
  EXPECT_GT(Result()["intervals"]["macro_f1"]["standard_error"], 0);
  const std::string numbers = directory_.Write("numbers.tsv", "text\tn\nThe book.\t1\nRed.\t1\n");
  ASSERT_EQ(Run(EvalClassification, {"classification", "--data", numbers, "--header", "--text",
                                     "text", "--label", "n"}),
            0)
      << error_;
  EXPECT_EQ(Result()["accuracy"], 1);
}

}  // namespace
}  // namespace hippodrome::eval_classification_test
