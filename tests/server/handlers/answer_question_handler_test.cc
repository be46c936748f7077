#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "engine/base/field_error.h"
#include "engine/base/status.h"
#include "tests/server/handlers/encoding_handlers_fixture.h"

namespace hippodrome::answer_question_handler_test {
namespace {

using testing::HasSubstr;
using AnswerQuestionHandlerTest = EncodingHandlersTest;

v1::AnswerQuestionRequest Ask(const std::string& question, const std::string& context) {
  v1::AnswerQuestionRequest request;
  request.set_model("answers");
  request.add_questions()->set_question(question);
  request.mutable_questions(0)->set_context(context);
  return request;
}

TEST_F(AnswerQuestionHandlerTest, AnswersArePartsOfTheContext) {
  std::string context;
  for (int i = 0; i < 30; ++i) context += "Paris is the capital, ";
  v1::AnswerQuestionRequest request = Ask("the capital?", context);
  *request.add_questions() = request.questions(0);
  request.mutable_questions(1)->set_context("Lyon!");
  request.set_top_k(4);
  request.set_stride(4);
  const auto response = AnswerQuestion(request);
  ASSERT_TRUE(response.ok()) << response.status();
  ASSERT_EQ(response->results_size(), 2);
  EXPECT_EQ(response->results(0).answers_size(), 4);
  for (int i = 0; i < 2; ++i) {
    for (const auto& answer : response->results(i).answers()) {
      EXPECT_FALSE(answer.text().empty());
      EXPECT_EQ(answer.text(), request.questions(i).context().substr(
                                   answer.start(), answer.end() - answer.start()));
    }
  }
  EXPECT_GT(response->usage().tokens(), 150);
}

TEST_F(AnswerQuestionHandlerTest, ThereMayBeNoAnswer) {
  v1::AnswerQuestionRequest request = Ask("is?", "Paris");
  request.set_allow_no_answer(true);
  request.set_no_answer_threshold(-100);
  const auto response = AnswerQuestion(request);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->results(0).answers(0).text(), "");
  EXPECT_EQ(response->results(0).answers(0).end(), 0);
}

TEST_F(AnswerQuestionHandlerTest, MistakesInQuestionsAreNamed) {
  const auto field = [&](const v1::AnswerQuestionRequest& request) {
    return Field(AnswerQuestion(request).status());
  };
  v1::AnswerQuestionRequest request;
  request.set_model("answers");
  EXPECT_EQ(field(request), "questions");
  EXPECT_EQ(field(Ask("a", "")), "questions[0].context");
  EXPECT_EQ(field(Ask("a", "  ")), "questions[0].context");
  EXPECT_EQ(field(Ask("", "a")), "questions[0].question");
  request = Ask("a", "b");
  for (const int64_t bad : {int64_t{0}, int64_t{101}, std::numeric_limits<int64_t>::min()}) {
    request.set_top_k(bad);
    EXPECT_EQ(field(request), "top_k") << bad;
  }
  request = Ask("a", "b");
  request.set_stride(-1);
  EXPECT_EQ(field(request), "stride");
  request = Ask("a", "b");
  request.set_max_answer_tokens(0);
  EXPECT_EQ(field(request), "max_answer_tokens");
  request = Ask("a", "b");
  request.set_no_answer_threshold(std::nanf(""));
  EXPECT_EQ(field(request), "no_answer_threshold");
}

TEST_F(AnswerQuestionHandlerTest, QuestionsThatAreTooLongAreRefused) {
  std::string question;
  for (int i = 0; i < 40; ++i) question += "a ";
  const absl::Status status = AnswerQuestion(Ask(question, "b")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(Message(status), HasSubstr("questions[0]"));
}

TEST_F(AnswerQuestionHandlerTest, AContextOfTooManyWindowsIsRefused) {
  std::string context;
  for (int i = 0; i < 80000; ++i) context += "a ";
  const absl::Status status = AnswerQuestion(Ask("b", context)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(Message(status), HasSubstr("the queue takes at most 4096 inputs"));
}

}  // namespace
}  // namespace hippodrome::answer_question_handler_test
