#include "tests/tools/evaluate/encoders/eval_fixture.h"

namespace hippodrome::eval_glue_test {
namespace {

using testing::HasSubstr;

const char kEntailment[] =
    "index\tsentence1\tsentence2\tlabel\n"
    "0\tThe book is red.\tThe book is.\tentailment\n"
    "1\tThe book.\tThe red.\tnot_entailment\n";
const char kInference[] =
    "sentence1\tsentence2\tgold_label\n"
    "The book is red.\tThe book is.\tneutral\n"
    "The book.\tThe red.\t-\n";

class EvalGlueTest : public EvalFixture {
 protected:
  // Writes a file of GLUE's folder.
  void WriteData(const std::string& task, const std::string& file, const std::string& text) {
    std::filesystem::create_directories(directory_.File("glue/" + task));
    directory_.Write("glue/" + task + "/" + file, text);
  }
  int RunGlue(const std::vector<std::string>& models) {
    std::vector<std::string> arguments = {"glue", "--data-dir", directory_.File("glue")};
    for (const std::string& model : models) {
      arguments.insert(arguments.end(), {"--model", model});
    }
    return Run(EvalGlue, arguments);
  }
};

TEST_F(EvalGlueTest, TakesAModelForEachTask) {
  WriteClassifier({"LABEL_0", "LABEL_1"}, 1, "rte-model");
  WriteClassifier({"LABEL_0", "LABEL_1", "LABEL_2"}, 1, "mnli-model");
  WriteData("RTE", "dev.tsv", kEntailment);
  WriteData("MNLI", "dev_matched.tsv", kInference);
  WriteData("MNLI", "dev_mismatched.tsv", kInference);
  WriteData("diagnostic", "diagnostic-full.tsv",
            "Premise\tHypothesis\tLabel\nThe book.\tThe red.\tentailment\n");
  ASSERT_EQ(
      RunGlue({"rte=" + directory_.File("rte-model"), "mnli=" + directory_.File("mnli-model")}), 0)
      << error_;
  const nlohmann::json result = Result();
  EXPECT_EQ(result["task"], "glue");
  ASSERT_EQ(result["tasks"].size(), 4U);
  EXPECT_EQ(result["tasks"]["rte"]["accuracy"], 0.5);
  EXPECT_EQ(result["tasks"]["rte"]["model"], directory_.File("rte-model"));
  EXPECT_EQ(result["tasks"]["rte"]["intervals"]["accuracy"]["high"], 1);
  EXPECT_EQ(result["tasks"]["mnli"]["accuracy"], 1);
  EXPECT_EQ(result["tasks"]["mnli"]["skipped"], 1);
  EXPECT_EQ(result["tasks"]["mnli_mismatched"]["model"], directory_.File("mnli-model"));
  EXPECT_EQ(result["tasks"]["ax"]["matthews_correlation"], 0);
  EXPECT_THAT(result["skipped"]["cola"].get<std::string>(), HasSubstr("there is no "));
  EXPECT_THAT(error_,
              HasSubstr("rte              2         accuracy              0.500 (0.000 to"));
  EXPECT_THAT(error_, HasSubstr("CoLA/dev.tsv"));
}

TEST_F(EvalGlueTest, TakesAFolderOfModels) {
  WriteClassifier({"LABEL_0", "LABEL_1"}, 1, "models/rte");
  WriteData("RTE", "dev.tsv", kEntailment);
  WriteData("MNLI", "dev_matched.tsv", kInference);
  ASSERT_EQ(RunGlue({directory_.File("models")}), 0) << error_;
  EXPECT_EQ(Result()["tasks"].size(), 1U);
  EXPECT_EQ(Result()["tasks"]["rte"]["model"], directory_.File("models/rte"));
  EXPECT_EQ(Result()["skipped"]["mnli"], "there is no model for it");
}

TEST_F(EvalGlueTest, TriesAModelOnTasksThatItFits) {
  WriteClassifier({"other", "great"}, 0);
  WriteData("RTE", "dev.tsv", kEntailment);
  WriteData("SST-2", "dev.tsv", "sentence\tlabel\nThe red book.\t1\nThe book.\t0\nRed.\t0\n");
  WriteData("MNLI", "dev_matched.tsv", kInference);
  ASSERT_EQ(RunGlue({directory_.path()}), 0) << error_;
  EXPECT_EQ(Result()["tasks"].size(), 2U);
  EXPECT_NEAR(Result()["tasks"]["sst2"]["accuracy"], 2.0 / 3, 1e-12);
  EXPECT_EQ(Result()["skipped"]["mnli"], "the model has 2 label(s), but mnli has 3");
}

TEST_F(EvalGlueTest, ErrorsNameWhatIsWrong) {
  WriteClassifier({"LABEL_0", "LABEL_1"}, 1);
  const std::string model = directory_.path();
  EXPECT_EQ(RunGlue({model}), 1);
  EXPECT_THAT(error_, HasSubstr("no task has both data and a model; cola: there is no "));
  EXPECT_EQ(RunGlue({"xyz=" + model}), 2);
  EXPECT_THAT(error_, HasSubstr("'xyz' is none of cola|sst2|"));
  std::filesystem::create_directories(directory_.File("empty"));
  EXPECT_EQ(RunGlue({directory_.File("empty")}), 1);
  EXPECT_THAT(error_, HasSubstr("/empty: expected a model, with config.json, or folders"));
  WriteData("RTE", "dev.tsv", std::string(kEntailment) + "2\tx\ty\tmaybe\n");
  EXPECT_EQ(RunGlue({model}), 1);
  EXPECT_THAT(error_, HasSubstr("RTE/dev.tsv: line 4: the label is 'maybe'"));
  WriteData("MNLI", "dev_matched.tsv", kInference);
  EXPECT_EQ(RunGlue({"mnli=" + model}), 1);
  EXPECT_THAT(error_, HasSubstr(": the model has 2 label(s), but mnli has 3"));
  EXPECT_EQ(Run(EvalGlue, {"glue"}), 2);
  EXPECT_THAT(error_, HasSubstr("--data-dir is required"));
}

}  // namespace
}  // namespace hippodrome::eval_glue_test
