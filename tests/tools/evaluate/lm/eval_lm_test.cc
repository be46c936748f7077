// `hippodrome eval lm` as it is called.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/testing/temporary_directory.h"
#include "tools/evaluate/eval_tasks.h"

namespace hippodrome::eval_lm_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr char kModel[] = "deploy/models/h3-demo";

class EvalLmTest : public testing::Test {
 protected:
  int Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "lm");
    for (const char* more : {"--device", "cpu", "--threads", "1", "--json"})
      arguments.emplace_back(more);
    arguments.push_back(directory_.File("out.json"));
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int code = EvalLm(static_cast<int>(argv.size()), argv.data());
    output_ = testing::internal::GetCapturedStdout();
    error_ = testing::internal::GetCapturedStderr();
    return code;
  }
  json Report() const { return json::parse(FileContent(directory_.File("out.json"))); }
  std::vector<json> Samples() const {
    std::vector<json> samples;
    std::istringstream lines(FileContent(directory_.File("samples.jsonl")));
    for (std::string line; std::getline(lines, line);) samples.push_back(json::parse(line));
    return samples;
  }

  const TemporaryDirectory directory_;
  std::string output_;
  std::string error_;
};

constexpr char kChoices[] =
    "{\"context\": \"The king\", \"choices\": [\" of Babylon\", \" xq zzv pkrt\"], \"gold\": 0}\n"
    "{\"context\": \"The queen\", \"choices\": [\" of Babylon\", \" xq zzv pkrt\"], \"gold\": 1}\n"
    "{\"context\": \"The lord\", \"choices\": [\" of Babylon\", \" xq zzv pkrt\"], \"gold\": 0}\n";

TEST_F(EvalLmTest, EvaluatesSeveralTasksOfADirectory) {
  directory_.Write("choices.jsonl", kChoices);
  directory_.Write("text.txt",
                   "The king of Babylon sat alone.\n<|endoftext|>\nIt was a dark night.\n");
  directory_.Write("generation.jsonl",
                   "{\"context\": \"It was a dark night\", \"answers\": [\"x\"]}\n");
  ASSERT_EQ(Run({"choices", "text", "generation", "--model", kModel, "--data", directory_.path(),
                 "--samples", directory_.File("samples.jsonl")}),
            0)
      << error_;
  const json tasks = Report()["tasks"];
  ASSERT_EQ(tasks.size(), 3);
  EXPECT_EQ(tasks[0]["task"], "choices");
  EXPECT_EQ(tasks[0]["examples"], 3);
  EXPECT_NEAR(tasks[0]["acc"].get<double>(), 2.0 / 3, 1e-12);
  EXPECT_LE(tasks[0]["intervals"]["acc"]["low"], tasks[0]["acc"]);
  EXPECT_EQ(tasks[1]["examples"], 2);
  EXPECT_GT(tasks[1]["bits_per_byte"], 0.5);
  EXPECT_EQ(tasks[2]["exact_match"], 0);
  const auto samples = Samples();
  ASSERT_EQ(samples.size(), 6);
  EXPECT_EQ(samples[1]["task"], "choices");
  EXPECT_EQ(samples[1]["line"], 2);
  EXPECT_EQ(samples[1]["asked"][1], json({"The queen", " xq zzv pkrt"}));
  EXPECT_EQ(samples[1]["best"], 0);
  EXPECT_EQ(samples[1]["gold"], 1);
  EXPECT_TRUE(samples[5]["text"].is_string());
}

TEST_F(EvalLmTest, AModelIsNoBetterThanItself) {
  const std::string data = directory_.Write("data.jsonl", kChoices);
  ASSERT_EQ(Run({"choices", "--model", kModel, "--compare", kModel, "--data", data}), 0) << error_;
  const json compared = Report()["tasks"][0]["compared"]["acc"];
  EXPECT_EQ(compared["difference"], 0);
  EXPECT_EQ(compared["high"], 0);
}

TEST_F(EvalLmTest, ExamplesAreOtherDocuments) {
  const std::string data = directory_.Write("data.jsonl", kChoices);
  ASSERT_EQ(Run({"choices", "--model", kModel, "--data", data, "--examples", data, "--shots", "2",
                 "--limit", "2", "--samples", directory_.File("samples.jsonl")}),
            0)
      << error_;
  const auto samples = Samples();
  ASSERT_EQ(samples.size(), 2);
  const std::string asked = samples[0]["asked"][0][0];
  EXPECT_THAT(asked, HasSubstr("The queen xq zzv pkrt\n\n"));
  EXPECT_THAT(asked, HasSubstr("The lord of Babylon\n\n"));
  EXPECT_TRUE(asked.ends_with("\n\nThe king"));
  EXPECT_EQ(Run({"choices", "--model", kModel, "--data", data, "--examples", data, "--shots", "3"}),
            1);
  EXPECT_THAT(error_, HasSubstr("it has 3 documents, expected 4 for 3 shots"));
}

TEST_F(EvalLmTest, LongTextsAreReadInWindows) {
  const std::string data =
      directory_.Write("text.txt", "The king of Babylon sat alone in the great hall.\n");
  const auto bits = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"text", "--model", kModel, "--data", data};
    arguments.insert(arguments.end(), more.begin(), more.end());
    EXPECT_EQ(Run(arguments), 0) << error_;
    return Report()["tasks"][0]["bits_per_byte"].get<double>();
  };
  const double whole = bits({});
  EXPECT_EQ(bits({"--max-length", "2048"}), whole);
  const double cut = bits({"--max-length", "6"});
  EXPECT_GT(cut, whole);
  EXPECT_LT(bits({"--max-length", "6", "--stride", "1"}), cut);
}

TEST_F(EvalLmTest, ListsItsTasks) {
  EXPECT_EQ(Run({"--list"}), 0);
  EXPECT_THAT(output_, HasSubstr("lambada"));
  EXPECT_THAT(output_, HasSubstr("COPA/val.jsonl"));
}

TEST_F(EvalLmTest, ErrorsSayWhatAndWhere) {
  const std::string data =
      directory_.Write("data.jsonl", "\n{\"context\": \"a\", \"choices\": [\"\"], \"gold\": 0}\n");
  EXPECT_EQ(Run({"choices", "--model", kModel, "--data", data}), 1);
  EXPECT_THAT(error_, HasSubstr("data.jsonl: line 2: continuation 0: it has no token of its own"));
  EXPECT_EQ(Run({"copa", "--model", kModel, "--data", directory_.path()}), 1);
  EXPECT_THAT(error_, HasSubstr("has none of COPA/val.jsonl, copa.jsonl, which copa looks for"));
  EXPECT_EQ(Run({"cpoa", "--model", kModel, "--data", data}), 1);
  EXPECT_THAT(error_, HasSubstr("there is no task \"cpoa\""));
  EXPECT_EQ(Run({"--model", kModel, "--data", data}), 2);
  EXPECT_THAT(error_, HasSubstr("expected a task"));
  EXPECT_EQ(Run({"choices", "--data", data}), 2);
  EXPECT_EQ(Run({"choices", "--model", kModel, "--data", data, "--max-length", "2"}), 2);
}

}  // namespace
}  // namespace hippodrome::eval_lm_test
