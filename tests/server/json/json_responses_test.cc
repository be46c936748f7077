#include "server/json/json_responses.h"

#include <gtest/gtest.h>

#include <vector>

#include "engine/base/field_error.h"
#include "engine/base/status.h"

namespace hippodrome::json_responses_test {
namespace {

const CompletionHead kHead{.id = "cmpl-1", .model = "m", .created = 5};

StreamUpdate Update(StreamFinish finish) {
  StreamUpdate update;
  update.text = "a\"";
  update.token_ids = {1, 2};
  update.finish = finish;
  update.prompt_tokens = 3;
  update.completion_tokens = 2;
  return update;
}

TEST(JsonResponsesTest, Completion) {
  const std::vector<StreamUpdate> choices = {Update(StreamFinish::kStop),
                                             Update(StreamFinish::kLength)};
  EXPECT_EQ(CompletionBody(kHead, choices),
            R"({"id":"cmpl-1","object":"text_completion","created":5,"model":"m","choices":[)"
            R"({"index":0,"text":"a\"","token_ids":[1,2],"logprobs":null,"finish_reason":"stop"},)"
            R"({"index":1,"text":"a\"","token_ids":[1,2],"logprobs":null,"finish_reason":"length"})"
            R"(],"usage":{"prompt_tokens":6,"completion_tokens":4,"total_tokens":10}})");
}

TEST(JsonResponsesTest, Events) {
  EXPECT_EQ(CompletionEvent(kHead, 1, Update(StreamFinish::kNone)),
            R"({"id":"cmpl-1","object":"text_completion","created":5,"model":"m","choices":[)"
            R"({"index":1,"text":"a\"","token_ids":[1,2],"logprobs":null,"finish_reason":null}]})");
  EXPECT_EQ(UsageEvent(kHead, std::vector<StreamUpdate>{Update(StreamFinish::kStop)}),
            R"({"id":"cmpl-1","object":"text_completion","created":5,"model":"m","choices":[],)"
            R"("usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}})");
}

TEST(JsonResponsesTest, Errors) {
  EXPECT_EQ(ErrorBody(FieldError("top_p", "bad")),
            R"({"error":{"message":"top_p: bad","type":"invalid_request_error",)"
            R"("code":"invalid_argument","param":"top_p"}})");
  EXPECT_EQ(ErrorBody(404, "unknown_route", "no"),
            R"({"error":{"message":"no","type":"not_found_error","code":"unknown_route",)"
            R"("param":null}})");
}

// An error may quote what the client sent.
TEST(JsonResponsesTest, InvalidUtf8IsReplaced) {
  EXPECT_NE(ErrorBody(NotFound("\xff")).find("\uFFFD"), std::string::npos);
}

TEST(JsonResponsesTest, Others) {
  v1::ListModelsResponse models;
  models.add_models()->set_name("m");
  EXPECT_EQ(ModelsBody(models), R"({"object":"list","data":[{"id":"m","object":"model",)"
                                R"("created":0,"owned_by":"hippodrome"}]})");
  v1::TokenizeResponse tokens;
  tokens.add_token_ids(7);
  v1::Model model;
  EXPECT_EQ(TokenizeBody(tokens, model), R"({"tokens":[7],"count":1})");
  model.set_max_positions(10);
  EXPECT_EQ(TokenizeBody(tokens, model), R"({"tokens":[7],"count":1,"max_model_len":10})");
  v1::DetokenizeResponse text;
  text.set_text("a");
  EXPECT_EQ(DetokenizeBody(text), R"({"prompt":"a"})");
}

}  // namespace
}  // namespace hippodrome::json_responses_test
