#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/testing/temporary_directory.h"
#include "tools/evaluate/eval_tasks.h"

namespace hippodrome::eval_choices_test {
namespace {

using testing::HasSubstr;

constexpr char kModel[] = "deploy/models/h3-demo";

class EvalChoicesTest : public testing::Test {
 protected:
  // The exit code of the command with `lines` as data.
  int Run(const std::string& lines) {
    std::vector<std::string> arguments = {"choices",
                                          "--model",
                                          kModel,
                                          "--data",
                                          directory_.Write("data.jsonl", lines),
                                          "--scores",
                                          directory_.File("scores.jsonl"),
                                          "--device",
                                          "cpu",
                                          "--threads",
                                          "1",
                                          "--json",
                                          directory_.File("out.json")};
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int code = EvalChoices(static_cast<int>(argv.size()), argv.data());
    testing::internal::GetCapturedStdout();
    error_ = testing::internal::GetCapturedStderr();
    return code;
  }

  const TemporaryDirectory directory_;
  std::string error_;
};

TEST_F(EvalChoicesTest, CountsWhereTheLikeliestIsGold) {
  const std::string choices = R"("choices": ["of Babylon", "xq zzv pkrt"])";
  ASSERT_EQ(Run(R"({"context": "The king ", )" + choices + R"(, "gold": 0})" + "\n" +
                R"({"context": "The king ", )" + choices + R"(, "gold": 1})" + "\n" +
                R"({"context": [], "choices": [[5, 6], [4095]], "gold": 0})" + "\n"),
            0)
      << error_;
  const auto result = nlohmann::json::parse(FileContent(directory_.File("out.json")));
  EXPECT_EQ(result["task"], "choices");
  EXPECT_EQ(result["examples"], 3);
  EXPECT_EQ(result["choices"], 6);
  std::vector<nlohmann::json> scores;
  std::istringstream lines(FileContent(directory_.File("scores.jsonl")));
  for (std::string line; std::getline(lines, line);) scores.push_back(nlohmann::json::parse(line));
  ASSERT_EQ(scores.size(), 3);
  EXPECT_EQ(scores[0]["best"], 0);
  EXPECT_EQ(scores[1], scores[0]);
  const auto& both = scores[0]["log_probabilities"];
  ASSERT_EQ(both.size(), 2);
  EXPECT_GT(both[0].get<double>(), both[1].get<double>());
  EXPECT_LT(both[0].get<double>(), 0);
  EXPECT_FALSE(scores[0]["greedy"][1]);
  EXPECT_EQ(scores[2]["tokens"], nlohmann::json({2, 1}));
  const double right = 1 + (scores[2]["best"] == 0 ? 1 : 0);
  EXPECT_EQ(result["accuracy"], right / 3);
  int64_t tokens = 0;
  for (const auto& score : scores) {
    for (const int64_t count : score["tokens"]) tokens += count;
  }
  EXPECT_EQ(result["tokens"], tokens);
}

TEST_F(EvalChoicesTest, ErrorsNameTheLineAndTheChoice) {
  EXPECT_EQ(Run("{\"context\": \"a\", \"choices\": [\" b\", \"\"], \"gold\": 0}\n"), 1);
  EXPECT_THAT(error_, HasSubstr("data.jsonl: line 1: choices[1]: it has no token of its own"));
  EXPECT_EQ(Run("\n{\"context\": [1], \"choices\": [[123456]], \"gold\": 0}\n"), 1);
  EXPECT_THAT(error_, HasSubstr("data.jsonl: line 2: choices[0]: "));
  EXPECT_THAT(error_, HasSubstr("123456"));
  EXPECT_EQ(Run("{}"), 1);
  EXPECT_THAT(error_, HasSubstr("data.jsonl: line 1: context: expected"));
}

}  // namespace
}  // namespace hippodrome::eval_choices_test
