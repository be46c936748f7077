#include "server/json/json_responses.h"

#include <gtest/gtest.h>

#include <vector>

#include "engine/base/field_error.h"
#include "engine/base/status.h"

namespace hippodrome::json_responses_test {
namespace {

const CompletionHead kHead{.id = "cmpl-1", .model = "m", .created = 5};

CompletionChoice Choice(int64_t index, StreamFinish finish) {
  return {.index = index, .text = "a\"", .token_ids = {1, 2}, .finish = finish};
}

v1::Usage Usage() {
  v1::Usage usage;
  usage.set_prompt_tokens(6);
  usage.set_completion_tokens(4);
  usage.mutable_prompt_tokens_details()->set_cached_tokens(2);
  return usage;
}

TEST(JsonResponsesTest, Completion) {
  const std::vector<CompletionChoice> choices = {Choice(0, StreamFinish::kStopString),
                                                 Choice(1, StreamFinish::kLength),
                                                 Choice(2, StreamFinish::kEndOfText)};
  EXPECT_EQ(
      CompletionBody(kHead, choices, Usage()),
      R"({"id":"cmpl-1","object":"text_completion","created":5,"model":"m","choices":[)"
      R"({"index":0,"text":"a\"","token_ids":[1,2],"logprobs":null,"finish_reason":"stop"},)"
      R"({"index":1,"text":"a\"","token_ids":[1,2],"logprobs":null,"finish_reason":"length"},)"
      R"({"index":2,"text":"a\"","token_ids":[1,2],"logprobs":null,"finish_reason":"stop"})"
      R"(],"usage":{"prompt_tokens":6,"completion_tokens":4,"total_tokens":10,"prompt_tokens_details":{"cached_tokens":2}}})");
}

TEST(JsonResponsesTest, WhatWasCachedIsLeftOutWhereNobodyCounted) {
  v1::Usage usage = Usage();
  usage.clear_prompt_tokens_details();
  EXPECT_TRUE(CompletionBody(kHead, {}, usage)
                  .ends_with(R"("usage":{"prompt_tokens":6,"completion_tokens":4,)"
                             R"("total_tokens":10}})"));
}

TEST(JsonResponsesTest, Events) {
  const std::string event =
      R"({"id":"cmpl-1","object":"text_completion","created":5,"model":"m","choices":[)"
      R"({"index":1,"text":"a\"","token_ids":[1,2],"logprobs":null,"finish_reason":null}])";
  EXPECT_EQ(CompletionEvent(kHead, Choice(1, StreamFinish::kNone), false), event + "}");
  EXPECT_EQ(CompletionEvent(kHead, Choice(1, StreamFinish::kNone), true),
            event + R"(,"usage":null})");
  EXPECT_EQ(
      UsageEvent(kHead, Usage()),
      R"({"id":"cmpl-1","object":"text_completion","created":5,"model":"m","choices":[],)"
      R"("usage":{"prompt_tokens":6,"completion_tokens":4,"total_tokens":10,"prompt_tokens_details":{"cached_tokens":2}}})");
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
  v1::Model& decoder = *models.add_models();
  decoder.set_name("m");
  decoder.set_architecture("h3");
  decoder.set_attention_window(1024);
  v1::Model& encoder = *models.add_models();
  encoder.set_name("e");
  encoder.set_architecture("bigs");
  encoder.set_max_positions(128);
  encoder.set_head("masked_lm");
  EXPECT_EQ(
      ModelsBody(models),
      R"({"object":"list","data":[{"id":"m","object":"model","created":0,)"
      R"("owned_by":"hippodrome","max_model_len":null,"architecture":"h3","attention_window":1024},)"
      R"({"id":"e","object":"model","created":0,"owned_by":"hippodrome",)"
      R"("max_model_len":128,"architecture":"bigs","head":"masked_lm"}]})");
  v1::TokenizeResponse tokens;
  tokens.add_token_ids(7);
  v1::Model model;
  EXPECT_EQ(TokenizeBody(tokens, model), R"({"tokens":[7],"count":1,"max_model_len":null})");
  model.set_max_positions(10);
  EXPECT_EQ(TokenizeBody(tokens, model), R"({"tokens":[7],"count":1,"max_model_len":10})");
  v1::DetokenizeResponse text;
  text.set_text("a");
  EXPECT_EQ(DetokenizeBody(text), R"({"prompt":"a"})");
  EXPECT_EQ(TokenizerInfoBody({.eos_token = "<e>", .eos_token_id = 3, .vocab_size = 4}),
            R"({"eos_token":"<e>","bos_token":null,"pad_token":null,"chat_template":null,)"
            R"("eos_token_id":3,"vocab_size":4,"model_max_length":null})");
}

}  // namespace
}  // namespace hippodrome::json_responses_test
