#include "tools/batch/score_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace hippodrome::score_json_test {
namespace {

using testing::HasSubstr;

TEST(ScoreJsonTest, TextsAreStringsOrIds) {
  const auto request =
      ParseScore(R"({"context": [1, 2], "continuations": ["a", [3]], "per_token": true})");
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->token_ids().ids_size(), 2);
  EXPECT_EQ(request->continuations(0).text(), "a");
  EXPECT_EQ(request->continuations(1).token_ids().ids(0), 3);
  EXPECT_TRUE(request->per_token());
}

TEST(ScoreJsonTest, ErrorsNameTheField) {
  const std::pair<const char*, const char*> bad[] = {
      {R"({"continuations": []})", "context: it is missing"},
      {R"({"context": "a"})", "continuations: it is missing"},
      {R"({"context": 5, "continuations": []})", "context: expected"},
      {R"({"context": "a", "continuations": "b"})", "continuations: expected"},
      {R"({"context": "a", "continuations": [{}]})", "continuations: expected"},
      {R"({"context": [-1], "continuations": []})", "context: token id -1"},
      {R"({"context": "a", "continuations": [], "per_token": 1})", "per_token: expected"},
      {R"({"context": "a", "continuation": []})", "continuation: there is no such field"}};
  for (const auto& [body, error] : bad) {
    EXPECT_THAT(ParseScore(body).status().ToString(), HasSubstr(error)) << body;
  }
}

TEST(ScoreJsonTest, FloatsAreReadBackAsTheyWere) {
  v1::ScoreResponse response;
  auto& score = *response.add_scores();
  score.set_log_probability(-0.1);
  score.set_tokens(1);
  score.add_token_ids(7);
  score.add_token_log_probabilities(-0.1F);
  EXPECT_EQ(ScoreBody(response, false),
            R"({"scores":[{"log_probability":-0.1,"tokens":1,"greedy":false}]})");
  EXPECT_THAT(ScoreBody(response, true),
              HasSubstr(R"("token_ids":[7],"token_log_probabilities":[-0.10000000149011612])"));
}

}  // namespace
}  // namespace hippodrome::score_json_test
