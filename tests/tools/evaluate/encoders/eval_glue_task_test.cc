#include "tests/tools/evaluate/encoders/eval_fixture.h"

namespace hippodrome::eval_glue_task_test {
namespace {

using testing::HasSubstr;
using EvalGlueTaskTest = EvalFixture;

const char kRte[] =
    "index\tsentence1\tsentence2\tlabel\n"
    "0\tThe book is red.\tThe book is.\tentailment\n"
    "1\tThe book is red.\tWhere is the book.\tnot_entailment\n"
    "2\tThe book.\tThe red.\tnot_entailment\n";

TEST_F(EvalGlueTaskTest, TakesOutputsInOrder) {
  WriteClassifier({"LABEL_0", "LABEL_1"}, 1);
  const std::string data = directory_.Write("dev.tsv", kRte);
  ASSERT_EQ(Run(EvalGlueTask, {"rte", "--data", data}), 0) << error_;
  EXPECT_EQ(Result()["examples"], 3);
  EXPECT_EQ(Result()["padded_to"], 64);
  EXPECT_NEAR(Result()["accuracy"], 2.0 / 3, 1e-12);
  // Samples of three examples with one wrong are all wrong in one of 27, all right in eight.
  EXPECT_EQ(Result()["intervals"]["accuracy"]["low"], 0);
  EXPECT_EQ(Result()["intervals"]["accuracy"]["high"], 1);
  EXPECT_NEAR(Result()["intervals"]["accuracy"]["standard_error"], std::sqrt(2.0 / 9 / 3), 0.02);
}

TEST_F(EvalGlueTaskTest, TakesOutputsByName) {
  WriteClassifier({"not_entailment", "entailment"}, 1);
  const std::string data = directory_.Write("dev.tsv", kRte);
  ASSERT_EQ(Run(EvalGlueTask, {"rte", "--data", data, "--pad-to", "0"}), 0) << error_;
  EXPECT_FALSE(Result().contains("padded_to"));
  EXPECT_NEAR(Result()["accuracy"], 1.0 / 3, 1e-12);
}

TEST_F(EvalGlueTaskTest, CountsWhatIsTruncated) {
  WriteClassifier({"LABEL_0", "LABEL_1"}, 1);
  const std::string data = directory_.Write("dev.tsv", kRte);
  ASSERT_EQ(Run(EvalGlueTask, {"rte", "--data", data, "--pad-to", "11"}), 0) << error_;
  EXPECT_EQ(Result()["truncated"], 2);
}

TEST_F(EvalGlueTaskTest, ScoresWithCorrelations) {
  WriteModel(EncoderHead::kSequenceClassification, {"LABEL_0"}, [](Tensors&) {});
  const std::string data = directory_.Write("dev.tsv",
                                            "sentence1\tsentence2\tscore\n"
                                            "the book\tthe book\t5.0\nred\tred\t0.5\n");
  ASSERT_EQ(Run(EvalGlueTask, {"stsb", "--data", data}), 0) << error_;
  EXPECT_NEAR(std::abs(Result()["pearson"].get<double>()), 1, 1e-12);  // as of any two points
  EXPECT_NEAR(Result()["spearman"], Result()["pearson"], 1e-12);
  EXPECT_TRUE(Result()["intervals"].contains("spearman"));
}

TEST_F(EvalGlueTaskTest, ColaScoresEachFeature) {
  WriteClassifier({"LABEL_0", "LABEL_1"}, 1);
  const std::string data = directory_.Write(
      "major.tsv",
      "Acceptability\tSentence\tSimple\tNever\n1\tThe book.\t1\t0\n0\tBook the.\t0\t0\n");
  ASSERT_EQ(Run(EvalGlueTask, {"cola", "--annotations", data}), 0) << error_;
  EXPECT_EQ(Result()["accuracy"], 0.5);
  EXPECT_EQ(Result()["matthews_correlation"], 0);
  const auto features = Result()["features"];
  EXPECT_EQ(features["Simple"]["examples"], 1);
  EXPECT_EQ(features["Simple"]["intervals"]["matthews_correlation"]["high"], 0);
  EXPECT_FALSE(features["Simple"].contains("accuracy"));
  EXPECT_EQ(features["Never"]["examples"], 0);
  EXPECT_FALSE(features["Never"].contains("intervals"));
  EXPECT_EQ(Run(EvalGlueTask, {"rte", "--annotations", data}), 2);
}

TEST_F(EvalGlueTaskTest, ErrorsNameWhatIsWrong) {
  WriteClassifier({"LABEL_0", "LABEL_1"}, 1);
  const std::string data = directory_.Write("dev.tsv", std::string(kRte) + "3\tx\ty\tmaybe\n");
  EXPECT_EQ(Run(EvalGlueTask, {"rte", "--data", data}), 1);
  EXPECT_THAT(error_, HasSubstr("/dev.tsv: line 5: the label is 'maybe'"));
  EXPECT_EQ(Run(EvalGlueTask, {"mnli", "--data", data}), 1);
  EXPECT_THAT(error_, HasSubstr("no column 'gold_label'"));
  EXPECT_EQ(Run(EvalSyntax, {"syntax", "--data", directory_.Write("s.tsv", "a\tb\tx\ty\n")}), 1);
  EXPECT_THAT(error_,
              HasSubstr("holds a BiGSForSequenceClassification, expected a BiGSForMaskedLM"));
  EXPECT_EQ(Run(EvalGlueTask, {"rte"}), 2);
  EXPECT_THAT(error_, HasSubstr("--data is required"));
}

}  // namespace
}  // namespace hippodrome::eval_glue_task_test
