// The commands as they are called, on tiny encoders that are made to give a known answer.
#include "tools/evaluate/eval_tasks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "kernels/make_backend.h"
#include "tests/testing/random_model.h"
#include "tests/testing/temporary_directory.h"

namespace hippodrome::eval_tasks_test {
namespace {

using testing::HasSubstr;
using Tensors = std::map<std::string, std::vector<float>>;

// Keeps what a model reads, so that it can be written.
class RecordedWeights final : public WeightsSource {
 public:
  absl::StatusOr<TensorView> Get(const std::string& name,
                                 const std::vector<int64_t>& shape) override {
    auto tensor = weights_.Get(name, shape);
    if (tensor.ok()) {
      shapes[name] = shape;
      values[name] = *ToFloats(*tensor);
    }
    return tensor;
  }
  void Drop(const TensorView& tensor) override { weights_.Drop(tensor); }

  std::map<std::string, std::vector<int64_t>> shapes;
  Tensors values;

 private:
  TestWeights weights_;
};

void WriteWeights(const std::string& path, const RecordedWeights& weights) {
  std::vector<TensorSpec> specs;
  for (const auto& [name, shape] : weights.shapes) specs.push_back({name, DType::kF32, shape});
  const auto writer = *SafetensorsWriter::Create(path, specs);
  for (const auto& [name, values] : weights.values) {
    ASSERT_TRUE(writer->Append(std::as_bytes(std::span(values))).ok());
  }
  ASSERT_TRUE(writer->Finish().ok());
}

class EvalTasksTest : public testing::Test {
 protected:
  // Writes a model that knows these words, its weights changed by `change`.
  void WriteModel(EncoderHead head, const std::vector<std::string>& labels,
                  const std::function<void(Tensors&)>& change) {
    BigsConfig config = TinyBigsConfig();
    config.head = head;
    config.labels = labels;
    directory_.Write("config.json", ToJson(config));
    directory_.Write("vocab.txt",
                     "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\nbook\nis\nare\nred\nwhere\n.\n");
    const auto backend = MakeCpuBackend({.threads = 1});
    RecordedWeights weights;
    ASSERT_TRUE(Bigs::Load(*backend, config, weights, DType::kF32).ok());
    change(weights.values);
    WriteWeights(directory_.File("model.safetensors"), weights);
  }

  // A classifier that always gives label number `label`.
  void WriteClassifier(const std::vector<std::string>& labels, size_t label) {
    WriteModel(EncoderHead::kSequenceClassification, labels, [&](Tensors& tensors) {
      for (float& weight : tensors.at("classifier.weight")) weight = 0;
      for (float& bias : tensors.at("classifier.bias")) bias = 0;
      tensors.at("classifier.bias").at(label) = 1;
    });
  }

  // Runs the task with these arguments, its name first, and the model, and gives its exit code.
  int Run(int (*command)(int, char**), std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--model", directory_.path(), "--device", "cpu", "--threads",
                                       "1", "--json", directory_.File("out.json")});
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int code = command(static_cast<int>(argv.size()), argv.data());
    testing::internal::GetCapturedStdout();
    error_ = testing::internal::GetCapturedStderr();
    return code;
  }
  nlohmann::json Result() const {
    return nlohmann::json::parse(FileContent(directory_.File("out.json")));
  }

  const TemporaryDirectory directory_;
  std::string error_;
};

const char kRte[] =
    "index\tsentence1\tsentence2\tlabel\n"
    "0\tThe book is red.\tThe book is.\tentailment\n"
    "1\tThe book is red.\tWhere is the book.\tnot_entailment\n"
    "2\tThe book.\tThe red.\tnot_entailment\n";

TEST_F(EvalTasksTest, GlueTakesOutputsInOrder) {
  WriteClassifier({"LABEL_0", "LABEL_1"}, 1);
  const std::string data = directory_.Write("dev.tsv", kRte);
  ASSERT_EQ(Run(EvalGlue, {"rte", "--data", data}), 0) << error_;
  EXPECT_EQ(Result()["examples"], 3);
  EXPECT_EQ(Result()["padded_to"], 64);
  EXPECT_NEAR(Result()["accuracy"], 2.0 / 3, 1e-12);
}

TEST_F(EvalTasksTest, GlueTakesOutputsByName) {
  WriteClassifier({"not_entailment", "entailment"}, 1);
  const std::string data = directory_.Write("dev.tsv", kRte);
  ASSERT_EQ(Run(EvalGlue, {"rte", "--data", data, "--pad-to", "0"}), 0) << error_;
  EXPECT_FALSE(Result().contains("padded_to"));
  EXPECT_NEAR(Result()["accuracy"], 1.0 / 3, 1e-12);
}

TEST_F(EvalTasksTest, GlueCountsWhatIsTruncated) {
  WriteClassifier({"LABEL_0", "LABEL_1"}, 1);
  const std::string data = directory_.Write("dev.tsv", kRte);
  ASSERT_EQ(Run(EvalGlue, {"rte", "--data", data, "--pad-to", "11"}), 0) << error_;
  EXPECT_EQ(Result()["truncated"], 2);
}

TEST_F(EvalTasksTest, GlueScoresWithCorrelations) {
  WriteModel(EncoderHead::kSequenceClassification, {"LABEL_0"}, [](Tensors&) {});
  const std::string data = directory_.Write("dev.tsv",
                                            "sentence1\tsentence2\tscore\n"
                                            "the book\tthe book\t5.0\nred\tred\t0.5\n");
  ASSERT_EQ(Run(EvalGlue, {"stsb", "--data", data}), 0) << error_;
  EXPECT_NEAR(std::abs(Result()["pearson"].get<double>()), 1, 1e-12);  // as of any two points
  EXPECT_NEAR(Result()["spearman"], Result()["pearson"], 1e-12);
}

TEST_F(EvalTasksTest, ColaScoresEachFeature) {
  WriteClassifier({"LABEL_0", "LABEL_1"}, 1);
  const std::string data = directory_.Write(
      "major.tsv", "Acceptability\tSentence\tSimple\n1\tThe book.\t1\n0\tBook the.\t0\n");
  ASSERT_EQ(Run(EvalGlue, {"cola", "--annotations", data}), 0) << error_;
  EXPECT_EQ(Result()["accuracy"], 0.5);
  EXPECT_EQ(Result()["matthews_correlation"], 0);
  EXPECT_EQ(Result()["features"]["Simple"]["examples"], 1);
  EXPECT_EQ(Run(EvalGlue, {"rte", "--annotations", data}), 2);
}

TEST_F(EvalTasksTest, ErrorsNameWhatIsWrong) {
  WriteClassifier({"LABEL_0", "LABEL_1"}, 1);
  const std::string data = directory_.Write("dev.tsv", std::string(kRte) + "3\tx\ty\tmaybe\n");
  EXPECT_EQ(Run(EvalGlue, {"rte", "--data", data}), 1);
  EXPECT_THAT(error_, HasSubstr("/dev.tsv: line 5: the label is 'maybe'"));
  EXPECT_EQ(Run(EvalGlue, {"mnli", "--data", data}), 1);
  EXPECT_THAT(error_, HasSubstr("no column 'gold_label'"));
  EXPECT_EQ(Run(EvalSyntax, {"syntax", "--data", directory_.Write("s.tsv", "a\tb\tx\ty\n")}), 1);
  EXPECT_THAT(error_,
              HasSubstr("holds a BiGSForSequenceClassification, expected a BiGSForMaskedLM"));
  EXPECT_EQ(Run(EvalGlue, {"rte"}), 2);
  EXPECT_THAT(error_, HasSubstr("--data is required"));
}

TEST_F(EvalTasksTest, ClassificationTakesNamesAndNumbers) {
  WriteClassifier({"ham", "spam", "unsure"}, 1);
  const std::string names = directory_.Write("names.tsv", "spam\tThe book.\nham\tRed.\n");
  ASSERT_EQ(Run(EvalClassification, {"classification", "--data", names}), 0) << error_;
  EXPECT_EQ(Result()["accuracy"], 0.5);
  EXPECT_NEAR(Result()["macro_f1"], 2.0 / 3 / 3, 1e-12);
  const std::string numbers = directory_.Write("numbers.tsv", "text\tn\nThe book.\t1\nRed.\t1\n");
  ASSERT_EQ(Run(EvalClassification, {"classification", "--data", numbers, "--header", "--text",
                                     "text", "--label", "n"}),
            0)
      << error_;
  EXPECT_EQ(Result()["accuracy"], 1);
}

// Equal logits everywhere: the best span is the first token of the context.
TEST_F(EvalTasksTest, SquadAnswersWithPartsOfTheContext) {
  WriteModel(EncoderHead::kQuestionAnswering, {"LABEL_0", "LABEL_1"}, [](Tensors& tensors) {
    for (float& weight : tensors.at("qa_outputs.weight")) weight = 0;
  });
  const std::string data = directory_.Write("squad.json", R"({"data": [{"paragraphs": [
      {"context": "Red is the book.", "qas": [
        {"question": "Where is the book", "answers": [{"text": "red"}]},
        {"question": "Where", "answers": [{"text": "the red book"}]}]}]}]})");
  ASSERT_EQ(Run(EvalSquad, {"squad", "--data", data}), 0) << error_;
  EXPECT_EQ(Result()["questions"], 2);
  EXPECT_EQ(Result()["windows"], 2);
  EXPECT_EQ(Result()["exact_match"], 50);
  EXPECT_NEAR(Result()["f1"], 100 * (1 + 2.0 / 3) / 2, 1e-9);
  // 9 tokens leave the first question room for 2 of the context's 5, in steps of 1; the second for
  // all.
  ASSERT_EQ(Run(EvalSquad, {"squad", "--data", data, "--pad-to", "9"}), 0) << error_;
  EXPECT_EQ(Result()["windows"], 5);
  // Of 7 tokens the first question leaves none.
  ASSERT_EQ(Run(EvalSquad, {"squad", "--data", data, "--pad-to", "7"}), 0) << error_;
  EXPECT_EQ(Result()["too_long"], 1);
  EXPECT_EQ(Result()["exact_match"], 0);
}

TEST_F(EvalTasksTest, SyntaxComparesTheLogitsOfTheTwoWords) {
  WriteModel(EncoderHead::kMaskedLm, {}, [](Tensors& tensors) {
    // "is" is 7, "are" 8: every [MASK] is rather an "are".
    std::vector<float>& bias = tensors.at("cls.predictions.bias");
    for (size_t id = 0; id < bias.size(); ++id) bias[id] = 1000.0F * static_cast<float>(id);
  });
  const std::string data = directory_.Write("pairs.tsv",
                                            "prep_anim\tsing\tthe book is\tthe book are\n"
                                            "prep_anim\tplur\tthe book are\tthe book is\n"
                                            "prep_inanim\tplur\tthe book are\tthe book is\n"
                                            "prep_inanim\tplur\tthe book are\tthe book am\n"
                                            "vp\tplur\tthe book are\tthe red is\n");
  ASSERT_EQ(Run(EvalSyntax, {"syntax", "--data", data}), 0) << error_;
  EXPECT_EQ(Result()["pairs"], 3);
  EXPECT_EQ(Result()["skipped_pairs"], 1);  // "am" is no token
  EXPECT_EQ(Result()["skipped_rows"], 1);   // two words differ
  EXPECT_NEAR(Result()["families"]["prep"]["accuracy"], 2.0 / 3, 1e-12);
  EXPECT_EQ(Result()["conditions"]["prep_anim/sing"]["accuracy"], 0);
}

}  // namespace
}  // namespace hippodrome::eval_tasks_test
