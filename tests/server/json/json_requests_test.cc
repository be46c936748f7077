#include "server/json/json_requests.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "engine/base/field_error.h"
#include "engine/base/status.h"

namespace hippodrome::json_requests_test {
namespace {

absl::StatusOr<CompletionCall> Parse(const std::string& body) {
  return ParseCompletion(body, RequestLimits());
}

TEST(ParseCompletionTest, ReadsEveryField) {
  const auto call = Parse(R"({"model": "m", "prompt": "hi", "max_tokens": 3, "temperature": 0.5,
      "top_p": 0.25, "top_k": 7, "min_p": 0.125, "seed": 9, "stop": ["a", "b"], "stream": true,
      "stream_options": {"include_usage": true}, "ignore_eos": true, "n": 3, "user": {"x": []},
      "logprobs": 4, "echo": true, "best_of": 3, "suffix": "", "presence_penalty": -0.5,
      "frequency_penalty": 0.75, "repetition_penalty": 1.5, "typical_p": 0.625,
      "logit_bias": {"7": -100, "0": 0.5}})");
  ASSERT_TRUE(call.ok()) << call.status();
  ASSERT_EQ(call->requests.size(), 1u);
  const v1::GenerateRequest& request = call->requests[0];
  EXPECT_EQ(request.model(), "m");
  EXPECT_EQ(request.text(), "hi");
  EXPECT_EQ(request.max_tokens(), 3);
  EXPECT_EQ(request.temperature(), 0.5f);
  EXPECT_EQ(request.top_p(), 0.25f);
  EXPECT_EQ(request.top_k(), 7);
  EXPECT_EQ(request.min_p(), 0.125f);
  EXPECT_EQ(request.seed(), 9u);
  EXPECT_EQ(request.stop_size(), 2);
  EXPECT_TRUE(request.ignore_eos());
  EXPECT_EQ(request.presence_penalty(), -0.5f);
  EXPECT_EQ(request.frequency_penalty(), 0.75f);
  EXPECT_EQ(request.repetition_penalty(), 1.5f);
  EXPECT_EQ(request.typical_p(), 0.625f);
  ASSERT_EQ(request.logit_bias_size(), 2);
  EXPECT_EQ(request.logit_bias().at(7), -100);
  EXPECT_EQ(request.logit_bias().at(0), 0.5f);
  EXPECT_EQ(request.log_probabilities(), 4);
  EXPECT_TRUE(request.score_prompt());
  EXPECT_TRUE(call->echo);
  EXPECT_TRUE(call->stream);
  EXPECT_TRUE(call->include_usage);
  EXPECT_EQ(call->choices, 3);
  EXPECT_EQ(call->candidates, 3);
}

TEST(ParseCompletionTest, PromptsAreScoredWhereTheyAreEchoedWithLogProbabilities) {
  EXPECT_FALSE(Parse(R"({"prompt": "x", "echo": true})")->requests[0].score_prompt());
  EXPECT_FALSE(Parse(R"({"prompt": "x", "logprobs": 0})")->requests[0].score_prompt());
  const auto both = Parse(R"({"prompt": "x", "echo": true, "logprobs": 0, "max_tokens": 0})");
  EXPECT_TRUE(both->requests[0].score_prompt());
  EXPECT_TRUE(both->requests[0].has_log_probabilities());
  EXPECT_TRUE(both->requests[0].has_max_tokens());
}

// Some clients have no other numbers than floats.
TEST(ParseCompletionTest, AStatesFileIsThereOnce) {
  const auto file = Parse(R"({"prompt": ["a", "b"], "state": "AAECAw=="})");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->requests[0].state(), std::string("\0\1\2\3", 4));
  EXPECT_EQ(file->requests[1].state(), "");
  const std::string handle(32, 'a');
  const auto named = Parse(R"({"prompt": ["a", "b"], "state": ")" + handle + "\"}");
  ASSERT_TRUE(named.ok()) << named.status();
  EXPECT_EQ(named->requests[1].state(), handle);
  EXPECT_TRUE(Parse(R"({"state": "AAECAw=="})").ok());
  EXPECT_FALSE(Parse(R"({"state": null})").ok());
  EXPECT_EQ(Field(Parse(R"({"prompt": "a", "state": 3})").status()), "state");
}

TEST(ParseCompletionTest, IntegersMayBeWrittenAsFloats) {
  const auto call = Parse(R"({"prompt": [1.0, 2e0], "max_tokens": 16.0, "top_k": 1e3, "n": 2.0,
                              "logprobs": 1.0, "seed": -1.0})");
  ASSERT_TRUE(call.ok()) << call.status();
  EXPECT_EQ(call->requests[0].token_ids().ids(1), 2);
  EXPECT_EQ(call->requests[0].max_tokens(), 16);
  EXPECT_EQ(call->requests[0].top_k(), 1000);
  EXPECT_EQ(call->requests[0].log_probabilities(), 1);
  EXPECT_EQ(call->requests[0].seed(), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(call->choices, 2);
}

TEST(ParseCompletionTest, FieldsThatAreNotThereAreNamed) {
  for (const char* field : {"max_completion_tokens", "response_format", "grammar", "messages",
                            "max_new_tokens", "temprature", "use_beam_search", ""}) {
    const auto call = Parse(R"({"prompt": "x", ")" + std::string(field) + R"(": 1})");
    EXPECT_TRUE(absl::IsInvalidArgument(call.status())) << field;
    EXPECT_EQ(Field(call.status()), field);
  }
  const std::string lengthy(100000, 'a');
  const auto call = Parse(R"({"prompt": "x", ")" + lengthy + R"(": 1})");
  EXPECT_EQ(Field(call.status()), lengthy.substr(0, 64));
}

TEST(ParseCompletionTest, FieldsThatChangeNoAnswerAreIgnored) {
  EXPECT_TRUE(Parse(R"({"prompt": "x", "user": "u", "metadata": {"a": 1}, "store": true,
                        "service_tier": "auto", "grammar": null, "options": {}})")
                  .ok());
}

TEST(ParseCompletionTest, SequencesAreCountedOverAllPrompts) {
  EXPECT_EQ(Parse(R"({"prompt": "x", "n": 128})")->candidates, 128);
  EXPECT_EQ(Field(Parse(R"({"prompt": "x", "n": 129})").status()), "n");
  EXPECT_EQ(Parse(R"({"prompt": ["x", "y"], "n": 2, "best_of": 64})")->candidates, 64);
  EXPECT_EQ(Field(Parse(R"({"prompt": ["x", "y"], "best_of": 65})").status()), "best_of");
}

TEST(ParseCompletionTest, AbsentAndNullFieldsStayUnset) {
  for (const char* body : {R"({"prompt": "x"})",
                           R"({"prompt": "x", "max_tokens": null, "temperature": null,
                               "seed": null, "stop": null, "stream": null, "model": null})"}) {
    const auto call = Parse(body);
    ASSERT_TRUE(call.ok()) << call.status();
    const v1::GenerateRequest& request = call->requests[0];
    EXPECT_FALSE(request.has_max_tokens() || request.has_temperature() || request.has_seed());
    EXPECT_EQ(request.stop_size(), 0);
    EXPECT_FALSE(call->stream);
  }
}

TEST(ParseCompletionTest, AllShapesOfPrompts) {
  EXPECT_EQ(Parse(R"({"prompt": [1, 2]})")->requests[0].token_ids().ids_size(), 2);
  const auto texts = Parse(R"({"prompt": ["a", "b"], "seed": 4})");
  ASSERT_EQ(texts->requests.size(), 2u);
  EXPECT_EQ(texts->requests[1].text(), "b");
  EXPECT_EQ(texts->requests[1].seed(), 4u);
  const auto ids = Parse(R"({"prompt": [[1], [2, 3]]})");
  ASSERT_EQ(ids->requests.size(), 2u);
  EXPECT_EQ(ids->requests[1].token_ids().ids(1), 3);
}

TEST(ParseCompletionTest, ANegativeSeedIsASeed) {
  EXPECT_EQ(Parse(R"({"prompt": "x", "seed": -1})")->requests[0].seed(),
            std::numeric_limits<uint64_t>::max());
}

TEST(ParseCompletionTest, NulCharactersAndSurrogatePairsAreText) {
  EXPECT_EQ(Parse(R"({"prompt": "a\u0000\ud83d\ude00"})")->requests[0].text(),
            std::string("a\0\U0001F600", 6));
}

struct BadField {
  const char* field;
  const char* member;
};

TEST(ParseCompletionTest, ABadFieldIsNamed) {
  const BadField rows[] = {
      {"prompt", R"("prompt": 5)"},
      {"prompt", R"("prompt": null)"},
      {"prompt", R"("prompt": {})"},
      {"prompt", R"("prompt": [1.5])"},
      {"prompt", R"("prompt": [1, "a"])"},
      {"prompt", R"("prompt": [-1])"},
      {"prompt", R"("prompt": [2147483648])"},
      {"prompt", R"("prompt": [18446744073709551615])"},
      {"max_tokens", R"("max_tokens": "5")"},
      {"max_tokens", R"("max_tokens": 1.5)"},
      {"max_tokens", R"("max_tokens": 9223372036854775808)"},
      {"max_tokens", R"("max_tokens": [])"},
      {"temperature", R"("temperature": "hot")"},
      {"temperature", R"("temperature": true)"},
      {"top_p", R"("top_p": {})"},
      {"top_k", R"("top_k": 1e30)"},
      {"min_p", R"("min_p": "x")"},
      {"seed", R"("seed": 1.5)"},
      {"seed", R"("seed": "1")"},
      {"stop", R"("stop": 5)"},
      {"stop", R"("stop": ["a", 5])"},
      {"stream", R"("stream": 1)"},
      {"stream_options", R"("stream_options": true)"},
      {"include_usage", R"("stream_options": {"include_usage": 1})"},
      {"include_all", R"("stream_options": {"include_all": true})"},
      {"model", R"("model": 1)"},
      {"ignore_eos", R"("ignore_eos": "yes")"},
      {"logprobs", R"("logprobs": true)"},
      {"logprobs", R"("logprobs": -1)"},
      {"logprobs", R"("logprobs": 4294967297)"},
      {"logprobs", R"("logprobs": 0.5)"},
      {"echo", R"("echo": 1)"},
      {"max_tokens", R"("max_tokens": 0)"},
      {"n", R"("n": 0)"},
      {"n", R"("n": 1000000)"},
      {"n", R"("n": 1000000000000000000000)"},
      {"best_of", R"("best_of": 0)"},
      {"best_of", R"("n": 3, "best_of": 2)"},
      {"best_of", R"("best_of": 2, "stream": true)"},
      {"suffix", R"("suffix": "x")"},
      {"presence_penalty", R"("presence_penalty": "1")"},
      {"frequency_penalty", R"("frequency_penalty": true)"},
      {"repetition_penalty", R"("repetition_penalty": [])"},
      {"logit_bias", R"("logit_bias": [5])"},
      {"logit_bias", R"("logit_bias": {"5": "1"})"},
      {"logit_bias", R"("logit_bias": {"05": 1})"},
      {"logit_bias", R"("logit_bias": {"-5": 1})"},
      {"logit_bias", R"("logit_bias": {"": 1})"},
      {"logit_bias", R"("logit_bias": {"the": 1})"},
      {"logit_bias", R"("logit_bias": {"4294967296": 1})"},
  };
  for (const BadField& row : rows) {
    const std::string prompt = std::string(row.field) == "prompt" ? "" : R"("prompt": "x", )";
    const std::string body = "{" + prompt + row.member + "}";
    const auto call = Parse(body);
    EXPECT_TRUE(absl::IsInvalidArgument(call.status())) << body;
    EXPECT_EQ(Field(call.status()), row.field) << body << ": " << call.status();
  }
}

TEST(ParseCompletionTest, WhatIsNotAnObjectIsRefused) {
  for (const std::string& body :
       {std::string(), std::string("{"), std::string("[]"), std::string("null"),
        std::string("{} x"), std::string("{\"prompt\": \"\xff\"}"),
        std::string("{\"prompt\": \"\xc3\"}"), std::string(R"({"prompt": "\ud800"})"),
        std::string(R"({"prompt": NaN})"), std::string(R"({"temperature": 1e999})"),
        std::string("{\"prompt\": \"\x01\"}")}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Parse(body).status())) << body;
  }
}

TEST(ParseCompletionTest, TheNumberOfPromptsIsBounded) {
  std::string body = R"({"prompt": ["x")";
  for (int i = 1; i < 129; ++i) body += R"(, "x")";
  EXPECT_EQ(Field(Parse(body + "]}").status()), "prompt");
}

// What is copied for each prompt is bounded before that.
TEST(ParseCompletionTest, ListsAreBounded) {
  std::string stops = R"("a")";
  std::string bias = R"("0": 1)";
  for (int i = 1; i < 20000; ++i) {
    stops += R"(, "a")";
    bias += ", \"" + std::to_string(i) + "\": 1";
  }
  EXPECT_EQ(Field(Parse(R"({"prompt": "x", "stop": [)" + stops + "]}").status()), "stop");
  EXPECT_EQ(Field(Parse(R"({"prompt": "x", "logit_bias": {)" + bias + "}}").status()),
            "logit_bias");
}

TEST(ParseTokenizeTest, ReadsAndRefuses) {
  EXPECT_FALSE(ParseTokenize(R"({"prompt": "a"})")->has_add_special_tokens());
  EXPECT_FALSE(
      ParseTokenize(R"({"prompt": "a", "add_special_tokens": false})")->add_special_tokens());
  EXPECT_EQ(Field(ParseTokenize(R"({"prompt": "a", "tokens": [1]})").status()), "tokens");
  EXPECT_EQ(ParseTokenize(R"({"prompt": "a", "model": "m"})")->text(), "a");
  EXPECT_EQ(Field(ParseTokenize("{}").status()), "prompt");
  EXPECT_EQ(Field(ParseTokenize(R"({"prompt": ["a"]})").status()), "prompt");
}

TEST(ParseDetokenizeTest, ReadsAndRefuses) {
  EXPECT_EQ(Field(ParseDetokenize(R"({"tokens": [1], "x": 1})").status()), "x");
  EXPECT_EQ(ParseDetokenize(R"({"tokens": [1, 2]})")->token_ids_size(), 2);
  EXPECT_EQ(Field(ParseDetokenize("{}").status()), "tokens");
  EXPECT_EQ(Field(ParseDetokenize(R"({"tokens": "a"})").status()), "tokens");
}

}  // namespace
}  // namespace hippodrome::json_requests_test
