// `hippodrome eval positions` as a whole.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/testing/temporary_directory.h"
#include "tools/evaluate/eval_tasks.h"

namespace hippodrome::eval_positions_test {
namespace {

using testing::HasSubstr;

class EvalPositionsTest : public testing::Test {
 protected:
  // The exit code of the command with `text` as data.
  int Run(const std::string& text, const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"positions",
                                          "--model",
                                          "deploy/models/h3-demo",
                                          "--data",
                                          directory_.Write("text.txt", text),
                                          "--device",
                                          "cpu",
                                          "--threads",
                                          "1",
                                          "--json",
                                          directory_.File("out.json"),
                                          "--svg",
                                          directory_.File("out.svg")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int code = EvalPositions(static_cast<int>(argv.size()), argv.data());
    testing::internal::GetCapturedStdout();
    error_ = testing::internal::GetCapturedStderr();
    return code;
  }

  static std::string Repeated(const std::string& text, int times) {
    std::string all;
    for (int i = 0; i < times; ++i) all += text;
    return all;
  }

  const TemporaryDirectory directory_;
  std::string error_;
};

TEST_F(EvalPositionsTest, ReadsDocumentsThatAreLongEnough) {
  const std::string lines = Repeated("The king of Babylon was an old man.\n", 30);
  const std::string text =
      lines + "<|endoftext|>\nA short one.\n<|endoftext|>\n" + lines + "<|endoftext|>\n" + lines;
  ASSERT_EQ(Run(text, {"--length", "200", "--last-tokens", "20", "--documents", "2"}), 0) << error_;
  const auto json = nlohmann::json::parse(FileContent(directory_.File("out.json")));
  EXPECT_EQ(json["task"], "positions");
  EXPECT_EQ(json["length"], 200);
  EXPECT_EQ(json["documents"], 2);
  EXPECT_EQ(json["windows"], 2);
  EXPECT_EQ(json["by_position"].size(), 3);
  EXPECT_EQ(json["by_context"].size(), 4);
  // What was said thirty times is easily said again.
  EXPECT_LT(json["by_position"][2]["bits_per_byte"], json["by_position"][0]["bits_per_byte"]);
  EXPECT_THAT(FileContent(directory_.File("out.svg")), HasSubstr("2 windows of 200 tokens"));
  EXPECT_THAT(error_, HasSubstr("129-200"));
}

TEST_F(EvalPositionsTest, SaysWhatItNeeds) {
  EXPECT_EQ(Run("Short.", {"--length", "200", "--last-tokens", "20"}), 1);
  EXPECT_THAT(error_, HasSubstr("expected at least a window and its successor, 201"));
  EXPECT_EQ(Run("Short.", {"--length", "200", "--last-tokens", "200"}), 2);
  EXPECT_THAT(error_, HasSubstr("--last-tokens"));
  EXPECT_EQ(Run("Short.", {"--documents", "0"}), 2);
  EXPECT_EQ(Run("", {"--length", "200", "--last-tokens", "20"}), 1);
}

}  // namespace
}  // namespace hippodrome::eval_positions_test
