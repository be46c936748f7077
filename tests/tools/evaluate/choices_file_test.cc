#include "tools/evaluate/choices_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hippodrome::choices_file_test {
namespace {

using testing::HasSubstr;
using Ids = std::vector<int32_t>;

TEST(ChoicesFileTest, TakesTextsAndTokenIds) {
  const auto questions = ReadChoices(
      "{\"context\": \"A king\", \"choices\": [\" rules\", \" \\u00e9t\\u00e9\"], \"gold\": 1}\r\n"
      "\n"
      "{\"context\": [], \"choices\": [[1, 2], []], \"gold\": 0, \"source\": {\"page\": 3}}");
  ASSERT_TRUE(questions.ok()) << questions.status();
  ASSERT_EQ(questions->size(), 2);
  const ChoiceQuestion& texts = questions->front();
  EXPECT_EQ(texts.line, 1);
  EXPECT_EQ(std::get<std::string>(texts.context), "A king");
  ASSERT_EQ(texts.choices.size(), 2);
  EXPECT_EQ(std::get<std::string>(texts.choices[1]), " \u00e9t\u00e9");
  EXPECT_EQ(texts.gold, 1);
  const ChoiceQuestion& ids = questions->back();
  EXPECT_EQ(ids.line, 3);
  EXPECT_EQ(std::get<Ids>(ids.context), Ids());
  EXPECT_EQ(std::get<Ids>(ids.choices[0]), Ids({1, 2}));
  EXPECT_EQ(ids.gold, 0);
}

TEST(ChoicesFileTest, ErrorsNameTheLineAndTheMember) {
  const std::string good = "{\"context\": \"a\", \"choices\": [\"b\"], \"gold\": 0}\n";
  const auto fault = [&](const std::string& line) {
    return std::string(ReadChoices(good + line + "\n" + good).status().message());
  };
  EXPECT_THAT(fault("{\"context\": "), HasSubstr("line 2: "));
  EXPECT_THAT(fault("[]"), HasSubstr("line 2: "));
  EXPECT_THAT(fault("{\"choices\": [\"b\"], \"gold\": 0}"), HasSubstr("line 2: context: expected"));
  EXPECT_THAT(fault("{\"context\": 3, \"choices\": [\"b\"], \"gold\": 0}"),
              HasSubstr("context: expected a text or an array"));
  EXPECT_THAT(fault("{\"context\": \"a\", \"choices\": [], \"gold\": 0}"),
              HasSubstr("choices: expected"));
  EXPECT_THAT(fault("{\"context\": \"a\", \"choices\": {\"b\": 1}, \"gold\": 0}"),
              HasSubstr("choices: expected"));
  EXPECT_THAT(fault("{\"context\": \"a\", \"choices\": [\"b\", [1]], \"gold\": 0}"),
              HasSubstr("choices[1]: expected what the context is"));
  EXPECT_THAT(fault("{\"context\": [1], \"choices\": [[1], [-1]], \"gold\": 0}"),
              HasSubstr("choices[1]: expected token ids"));
  EXPECT_THAT(fault("{\"context\": [1], \"choices\": [[1], [4294967296]], \"gold\": 0}"),
              HasSubstr("choices[1]: expected token ids"));
  EXPECT_THAT(fault("{\"context\": \"a\", \"choices\": [\"b\"]}"), HasSubstr("gold: expected"));
  EXPECT_THAT(fault("{\"context\": \"a\", \"choices\": [\"b\"], \"gold\": 1}"),
              HasSubstr("gold: expected the place"));
  EXPECT_THAT(fault("{\"context\": \"a\", \"choices\": [\"b\"], \"gold\": -1}"),
              HasSubstr("gold: expected"));
  EXPECT_THAT(std::string(ReadChoices("\n \n").status().message()), HasSubstr("no questions"));
}

}  // namespace
}  // namespace hippodrome::choices_file_test
