// The command as it is called, on a tiny encoder.
#include <filesystem>

#include "tests/tools/evaluate/encoders/eval_fixture.h"
#include "tools/commands/commands.h"

namespace hippodrome::finetune_command_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
namespace fs = std::filesystem;

const char kEntailment[] =
    "index\tsentence1\tsentence2\tlabel\n"
    "0\tThe book is red.\tThe book is.\tentailment\n"
    "1\tThe book.\tThe red.\tnot_entailment\n"
    "2\tThe red book.\tThe book is red.\tentailment\n"
    "3\tThe book is.\tWhere is the book.\tnot_entailment\n";
const char kInference[] =
    "sentence1\tsentence2\tgold_label\n"
    "The book is red.\tThe book is.\tneutral\n"
    "The book is.\tThe book.\tentailment\n"
    "The book is red.\tThe book is.\tcontradiction\n"
    "The book.\tThe red.\t-\n";
const char kSquad[] = R"({"data": [{"paragraphs": [{"context": "The book is red.", "qas": [
    {"id": "1", "question": "Where is the book", "answers": [{"text": "red", "answer_start": 12}]},
    {"id": "2", "question": "The red", "answers": [{"text": "book", "answer_start": 4}]}]}]}]})";

class FinetuneCommandTest : public EvalFixture {
 protected:
  FinetuneCommandTest() {
    WriteModel(EncoderHead::kMaskedLm, {}, [](Tensors&) {}, "model");
  }

  // Writes a file of the data folder.
  void WriteData(const std::string& file, const std::string& text) {
    fs::create_directories(fs::path(directory_.File("data/" + file)).parent_path());
    directory_.Write("data/" + file, text);
  }
  void WriteRte() {
    WriteData("RTE/train.tsv", kEntailment);
    WriteData("RTE/dev.tsv", kEntailment);
  }
  // Two rates and two seeds, one epoch.
  int Finetune(const std::string& task, const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {"finetune",   task,
                                          "--model",    directory_.File("model"),
                                          "--data-dir", directory_.File("data"),
                                          "--out",      directory_.File("out"),
                                          "--batches",  "2",
                                          "--epochs",   "1",
                                          "--rates",    "1e-3,1e-2"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Run(FinetuneCommand, arguments);
  }
  std::string File(const std::string& name) const { return FileContent(directory_.File(name)); }
};

TEST_F(FinetuneCommandTest, TrainsAGridAndKeepsTheBest) {
  WriteRte();
  ASSERT_EQ(Finetune("rte"), 0) << error_;
  const nlohmann::json result = Result();
  EXPECT_EQ(result["task"], "rte");
  EXPECT_EQ(result["metrics"], nlohmann::json::array({"accuracy"}));
  ASSERT_EQ(result["runs"].size(), 4U);
  EXPECT_EQ(result["runs"][0]["name"], "rate-0.001-decay-0.01-batch-2-epochs-1-seed-1");
  EXPECT_EQ(result["runs"][0]["steps"], 2);
  EXPECT_EQ(result["runs"][0]["model_step"], 2);
  double best = 0;
  for (const auto& run : result["runs"]) {
    EXPECT_TRUE(run["dev"]["intervals"].contains("accuracy"));
    best = std::max(best, run["dev"]["accuracy"].get<double>());
    const std::string folder = "out/runs/" + run["name"].get<std::string>();
    EXPECT_FALSE(fs::exists(directory_.File(folder + "/checkpoints")));
    if (run["name"] != result["best"]) continue;
    EXPECT_EQ(run["dev"]["accuracy"], best);
    EXPECT_EQ(File(folder + "/model/model.safetensors"), File("out/model/model.safetensors"));
  }
  ASSERT_EQ(result["points"].size(), 2U);
  EXPECT_EQ(result["points"][0]["seeds"], 2);
  EXPECT_NEAR(result["points"][0]["mean"]["accuracy"].get<double>(),
              (result["runs"][0]["dev"]["accuracy"].get<double>() +
               result["runs"][1]["dev"]["accuracy"].get<double>()) /
                  2,
              1e-12);
  EXPECT_TRUE(result["points"][0]["deviation"].contains("accuracy"));
  EXPECT_THAT(error_, AllOf(HasSubstr("accuracy (95 %)"), HasSubstr("accuracy, mean and deviation"),
                            HasSubstr("\n*  0.0"), HasSubstr("by accuracy on the dev data")));
  EXPECT_THAT(File("out/model/config.json"), HasSubstr("not_entailment"));
}

TEST_F(FinetuneCommandTest, DoesNotRunAgainWhatHasEnded) {
  WriteRte();
  ASSERT_EQ(Finetune("rte", {"--seeds", "1"}), 0) << error_;
  const nlohmann::json first = Result();
  const std::string weights = File("out/model/model.safetensors");
  const fs::path metrics = fs::path(directory_.File("out/runs")) /
                           first["runs"][0]["name"].get<std::string>() / "metrics.jsonl";
  fs::remove(metrics);
  ASSERT_EQ(Finetune("rte", {"--seeds", "1"}), 0) << error_;
  EXPECT_FALSE(fs::exists(metrics));
  EXPECT_EQ(Result(), first);
  EXPECT_EQ(File("out/model/model.safetensors"), weights);
  EXPECT_EQ(Finetune("rte", {"--seeds", "1", "--length", "9"}), 1);
  EXPECT_THAT(error_, HasSubstr("result.json: is of a run with other settings"));
  WriteModel(
      EncoderHead::kMaskedLm, {}, [](Tensors& tensors) { tensors.begin()->second[0] = 9; },
      "model");
  EXPECT_EQ(Finetune("rte", {"--seeds", "1"}), 1);
  EXPECT_THAT(error_, HasSubstr("or from another model"));
}

TEST_F(FinetuneCommandTest, ARunIsThatOfTrain) {
  WriteRte();
  ASSERT_EQ(Finetune("rte", {"--seeds", "1", "--rates", "1e-3"}), 0) << error_;
  const std::string folder = "out/runs/" + Result()["best"].get<std::string>();
  fs::remove_all(directory_.File(folder + "/model"));
  std::vector<std::string> arguments = {"train", "--config", directory_.File(folder + "/run.json")};
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  testing::internal::CaptureStderr();
  EXPECT_EQ(TrainCommand(static_cast<int>(argv.size()), argv.data()), 0);
  testing::internal::GetCapturedStderr();
  EXPECT_EQ(File(folder + "/model/model.safetensors"), File("out/model/model.safetensors"));
}

TEST_F(FinetuneCommandTest, BeginsWithTheModelOfMnli) {
  WriteRte();
  WriteData("MNLI/train.tsv", kInference);
  WriteData("MNLI/dev_matched.tsv", kInference);
  WriteData("CoLA/train.tsv", "x\t1\t\tThe book is red.\nx\t0\t*\tBook the.\n");
  WriteData("CoLA/dev.tsv", "x\t1\t\tThe book is red.\nx\t0\t*\tBook the.\n");
  ASSERT_EQ(Finetune("glue", {"--seeds", "1", "--rates", "1e-3"}), 0) << error_;
  const nlohmann::json result = Result();
  EXPECT_EQ(result["task"], "glue");
  ASSERT_EQ(result["tasks"].size(), 3U);
  EXPECT_EQ(result["tasks"]["rte"]["model"], directory_.File("out/models/mnli"));
  EXPECT_EQ(result["tasks"]["mnli"]["model"], directory_.File("model"));
  EXPECT_EQ(result["tasks"]["cola"]["model"], directory_.File("model"));
  EXPECT_EQ(result["tasks"]["cola"]["metrics"][0], "matthews_correlation");
  EXPECT_EQ(result["tasks"]["mnli"]["runs"][0]["dev"]["skipped"], 1);
  EXPECT_THAT(result["skipped"]["sst2"].get<std::string>(), HasSubstr("there is no "));
  EXPECT_THAT(result["skipped"], Not(testing::Contains("ax")));
  EXPECT_THAT(File("out/models/mnli/config.json"), HasSubstr("contradiction"));
  // Its models are those that eval takes.
  ASSERT_EQ(Run(EvalGlue, {"glue", "--data-dir", directory_.File("data"), "--model",
                           directory_.File("out/models")}),
            0)
      << error_;
  EXPECT_EQ(Result()["tasks"]["rte"]["accuracy"],
            result["tasks"]["rte"]["runs"][0]["dev"]["accuracy"]);
}

TEST_F(FinetuneCommandTest, LearnsScores) {
  const std::string scores =
      "index\tsentence1\tsentence2\tscore\n0\tThe book.\tThe red.\t1.5\n1\tThe book.\tBook.\t4\n"
      "2\tRed.\tThe red.\t5.0\n";
  WriteData("STS-B/train.tsv", scores);
  WriteData("STS-B/dev.tsv", scores);
  ASSERT_EQ(Finetune("stsb", {"--seeds", "1", "--rates", "1e-3"}), 0) << error_;
  EXPECT_TRUE(Result()["runs"][0]["dev"].contains("spearman"));
}

TEST_F(FinetuneCommandTest, AnswersQuestions) {
  WriteData("train-v1.1.json", kSquad);
  WriteData("dev-v1.1.json", kSquad);
  ASSERT_EQ(Finetune("squad", {"--seeds", "1", "--rates", "1e-3"}), 0) << error_;
  const nlohmann::json result = Result();
  EXPECT_EQ(result["metrics"], nlohmann::json::array({"f1", "exact_match"}));
  EXPECT_EQ(result["runs"][0]["dev"]["questions"], 2);
  EXPECT_THAT(File("out/model/config.json"), HasSubstr("BiGSForQuestionAnswering"));
}

// The table of positions goes on, as that of BiGS at 512 tokens.
TEST_F(FinetuneCommandTest, TakesFilesAndLongerInputs) {
  const std::string file = directory_.Write("other.tsv", kEntailment);
  const int64_t length = TinyBigsConfig().max_position_embeddings * 2;
  ASSERT_EQ(Finetune("rte", {"--train", file, "--dev", file, "--seeds", "1", "--rates", "1e-3",
                             "--length", std::to_string(length)}),
            0)
      << error_;
  EXPECT_EQ(Result()["length"], length);
}

TEST_F(FinetuneCommandTest, TellsWhichRunsGaveNoModel) {
  WriteRte();
  WriteModel(
      EncoderHead::kMaskedLm, {},
      [](Tensors& tensors) { std::ranges::fill(tensors.begin()->second, 1e38F); }, "model");
  EXPECT_EQ(Finetune("rte", {"--seeds", "1", "--rates", "1e-3"}), 1);
  EXPECT_THAT(error_, HasSubstr("no run gave a model; step 1: loss "));
}

TEST_F(FinetuneCommandTest, ErrorsNameWhatIsWrong) {
  EXPECT_EQ(Finetune("rte"), 1);
  EXPECT_THAT(error_, HasSubstr("there is no " + directory_.File("data/RTE/train.tsv")));
  EXPECT_EQ(Finetune("glue"), 1);
  EXPECT_THAT(error_, HasSubstr("no task of GLUE has data"));
  EXPECT_EQ(Finetune("ax"), 2);
  EXPECT_THAT(error_, HasSubstr("'ax' is none of cola|sst2|"));
  EXPECT_EQ(Finetune("squad"), 1);
  EXPECT_THAT(error_, HasSubstr("train-v2.0.json"));
  WriteRte();
  EXPECT_EQ(Finetune("rte", {"--rates", "1e-3,fast"}), 2);
  EXPECT_THAT(error_, HasSubstr("--rates has 'fast', expected numbers from 1e-12 to 100"));
  EXPECT_EQ(Finetune("rte", {"--seeds", "1,1"}), 2);
  EXPECT_THAT(error_, HasSubstr("--seeds has '1' twice"));
  EXPECT_EQ(Finetune("rte", {"--epochs", "0"}), 2);
  EXPECT_EQ(Finetune("rte", {"--patience", "0"}), 2);
  EXPECT_EQ(Finetune("rte", {"--grid", "large"}), 2);
  EXPECT_EQ(Finetune("rte", {"--batches", "3", "--micro-batch", "2"}), 1);
  EXPECT_THAT(error_, HasSubstr("micro_batch is 2, expected a divisor of batch 3"));
  WriteData("RTE/dev.tsv", std::string(kEntailment) + "4\tx\ty\tmaybe\n");
  EXPECT_EQ(Finetune("rte"), 1);
  EXPECT_THAT(error_, HasSubstr("RTE/dev.tsv: line 6: the label is 'maybe'"));
}

}  // namespace
}  // namespace hippodrome::finetune_command_test
