#include "tools/evaluate/squad_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/status.h"

namespace hippodrome::squad_file_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string Error(const std::string& text) { return Message(ParseSquad(text).status()); }

// A file with one question, described by its other members.
std::string WithQuestion(const std::string& members) {
  return R"({"data": [{"paragraphs": [{"context": "c", "qas": [{"question": "q")" + members +
         "}]}]}]}";
}

TEST(SquadFileTest, ReadsVersion1) {
  const auto file = ParseSquad(R"({"version": "1.1", "data": [
    {"title": "t", "paragraphs": [{"context": "c0", "qas": []}]},
    {"paragraphs": [{"context": "c1", "qas": [
      {"id": "x", "question": "q0", "answers": [{"answer_start": 0, "text": "a"}, {"text": "b"}]},
      {"id": "y", "question": "q1", "answers": [{"text": "\u00e9"}]}]}]}]})");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->questions, 2);
  EXPECT_FALSE(file->some_impossible);
  ASSERT_EQ(file->paragraphs.size(), 2U);
  EXPECT_EQ(file->paragraphs[1].context, "c1");
  EXPECT_EQ(file->paragraphs[1].questions[1].id, "y");
  EXPECT_THAT(file->paragraphs[1].questions[0].answers, ElementsAre("a", "b"));
  EXPECT_THAT(file->paragraphs[1].questions[0].answer_starts, ElementsAre(0, -1));
  EXPECT_EQ(file->paragraphs[1].questions[1].answers[0], "\u00e9");
}

TEST(SquadFileTest, ReadsVersion2) {
  const auto file = ParseSquad(WithQuestion(
      R"(, "is_impossible": true, "answers": [], "plausible_answers": [{"text": "p"}])"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(file->some_impossible);
  EXPECT_THAT(file->paragraphs[0].questions[0].answers, IsEmpty());
}

TEST(SquadFileTest, NamesThePlaceOfAnError) {
  EXPECT_THAT(Error("{}"), HasSubstr("data: expected an array"));
  EXPECT_THAT(Error(R"({"data": [1]})"), HasSubstr("data[0].paragraphs: expected an array"));
  EXPECT_THAT(Error(R"({"data": [{"paragraphs": [{"qas": []}]}]})"),
              HasSubstr("data[0].paragraphs[0].context: expected a string"));
  EXPECT_THAT(Error(WithQuestion(R"(, "id": 1)")), HasSubstr("qas[0].id: expected a string"));
  EXPECT_THAT(Error(WithQuestion(R"(, "answers": [{"text": 1}])")),
              HasSubstr("data[0].paragraphs[0].qas[0].answers[0].text: expected a string"));
  EXPECT_THAT(Error(WithQuestion(R"(, "answers": [{"text": "a", "answer_start": -1}])")),
              HasSubstr("answers[0].answer_start: expected an integer from 0 to 2^30"));
  EXPECT_THAT(Error(WithQuestion(R"(, "answers": [])")),
              HasSubstr("qas[0].answers: expected an answer, or is_impossible"));
  EXPECT_THAT(Error(WithQuestion(R"(, "is_impossible": 1, "answers": [])")),
              HasSubstr("is_impossible: expected true or false"));
}

TEST(SquadFileTest, RefusesWhatIsNoFile) {
  EXPECT_FALSE(ParseSquad("").ok());
  EXPECT_FALSE(ParseSquad("[]").ok());
  EXPECT_THAT(Error(R"({"data": []})"), HasSubstr("no questions"));
}

}  // namespace
}  // namespace hippodrome::squad_file_test
