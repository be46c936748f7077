#include "tools/load/prompts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "tests/testing/temporary_directory.h"
#include "tools/command_line/text_file.h"

namespace hippodrome::prompts_test {
namespace {

class PromptsTest : public testing::Test {
 protected:
  absl::StatusOr<Prompts> Read(const std::string& name, const std::string& text,
                               LoadTask task = LoadTask::kGenerate) {
    const std::string path = directory_.path() + "/" + name;
    EXPECT_TRUE(WriteTextFile(path, text).ok());
    return Prompts::Read(path, {.task = task, .max_tokens = {7, 7}});
  }

  TemporaryDirectory directory_;
};

TEST_F(PromptsTest, RandomOnesComeFromTheSeedAndTheirNumber) {
  const PromptOptions options{.prompt = {3, 9}, .max_tokens = {1, 4}, .seed = 5};
  const Prompts one(options), same(options);
  PromptOptions with_another_seed = options;
  with_another_seed.seed = 6;
  const Prompts other(with_another_seed);
  std::set<size_t> lengths;
  std::set<int64_t> new_tokens;
  int differ = 0;
  for (int64_t i = 199; i >= 0; --i) {
    const LoadRequest request = one.Make(i);
    EXPECT_EQ(request.token_ids, same.Make(i).token_ids);
    EXPECT_EQ(request.max_tokens, same.Make(i).max_tokens);
    EXPECT_TRUE(request.text.empty());
    differ += request.token_ids != other.Make(i).token_ids &&
              request.token_ids != one.Make(i + 1).token_ids;
    lengths.insert(request.token_ids.size());
    new_tokens.insert(request.max_tokens);
    const auto [least, most] =
        std::minmax_element(request.token_ids.begin(), request.token_ids.end());
    EXPECT_GE(*least, 0);
    EXPECT_LT(*most, kDrawnTokens);
  }
  EXPECT_EQ(differ, 200);
  EXPECT_EQ(lengths, (std::set<size_t>{3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(new_tokens, (std::set<int64_t>{1, 2, 3, 4}));
}

TEST_F(PromptsTest, EncodersGetWords) {
  const LoadRequest request = Prompts({.task = LoadTask::kPredict, .prompt = {3, 3}}).Make(0);
  EXPECT_TRUE(request.token_ids.empty());
  EXPECT_EQ(std::count(request.text.begin(), request.text.end(), ' '), 2);
  EXPECT_EQ(request.text.size(), 14);
}

TEST_F(PromptsTest, ReadsJsonLinesOverAndOver) {
  const auto prompts =
      Read("p.jsonl", "{\"prompt\": \"a \\u00e9\"}\n\n{\"prompt\": [1, 2], \"max_tokens\": 3}\r\n");
  ASSERT_TRUE(prompts.ok()) << prompts.status();
  EXPECT_EQ(prompts->Make(0).text, "a \xc3\xa9");
  EXPECT_EQ(prompts->Make(0).max_tokens, 7);
  EXPECT_EQ(prompts->Make(1).token_ids, (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(prompts->Make(1).max_tokens, 3);
  EXPECT_EQ(prompts->Make(2).text, "a \xc3\xa9");
}

TEST_F(PromptsTest, ReadsLinesOfText) {
  const auto prompts = Read("p.txt", "{\"prompt\": 1}\r\n \t\nlast");
  ASSERT_TRUE(prompts.ok()) << prompts.status();
  EXPECT_EQ(prompts->Make(0).text, "{\"prompt\": 1}");
  EXPECT_EQ(prompts->Make(1).text, "last");
  EXPECT_EQ(prompts->Make(2).text, "{\"prompt\": 1}");
}

TEST_F(PromptsTest, RefusesBadFilesByLine) {
  for (const char* line :
       {"x", "[]", "{}", "{\"prompt\": \"\"}", "{\"prompt\": []}", "{\"prompt\": [-1]}",
        "{\"prompt\": [1.5]}", "{\"prompt\": [4294967296]}", "{\"prompt\": 5}",
        "{\"prompt\": null}", "{\"prompt\": \"a\", \"max_tokens\": 0}",
        "{\"prompt\": \"a\", \"max_tokens\": -1}", "{\"prompt\": \"a\", \"max_tokens\": 9999999}",
        "{\"prompt\": \"a\", \"max_tokens\": \"1\"}", "{\"prompt\": \"a\", \"stop\": \"b\"}",
        "{\"prompt\": \"a\"} {}", "{\"prompt\": \"\xff\"}"}) {
    const absl::Status status =
        Read("p.jsonl", "{\"prompt\": \"a\"}\n" + std::string(line)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << line;
    EXPECT_NE(status.ToString().find("p.jsonl, line 2: "), std::string::npos) << status;
  }
  EXPECT_FALSE(Read("p.txt", "\n\n").ok());
  EXPECT_FALSE(Read("p.jsonl", "").ok());
  EXPECT_FALSE(Read("p.jsonl", "{\"prompt\": [1]}", LoadTask::kPredict).ok());
  EXPECT_FALSE(Prompts::Read("/nowhere", {}).ok());
}

TEST_F(PromptsTest, LengthRanges) {
  EXPECT_EQ(ParseLengthRange("5", 9)->most, 5);
  EXPECT_EQ(ParseLengthRange("5-9", 9)->least, 5);
  EXPECT_EQ(ParseLengthRange("5-9", 9)->most, 9);
  for (const char* text : {"", "0", "-1", "5-", "9-5", "5-10", "10", "5 ", "5-9-", "x", "1e3"}) {
    EXPECT_FALSE(ParseLengthRange(text, 9).ok()) << text;
  }
}

}  // namespace
}  // namespace hippodrome::prompts_test
