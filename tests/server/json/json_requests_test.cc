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
      "stream_options": {"include_usage": true}, "ignore_eos": true, "n": 1, "user": {"x": []},
      "logprobs": null, "echo": false, "best_of": 1, "suffix": null, "presence_penalty": 0.0,
      "logit_bias": {}})");
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
  EXPECT_TRUE(call->stream);
  EXPECT_TRUE(call->include_usage);
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
      {"prompt", R"("prompt": ["a", [1]], "prompt": ["a", 1])"},
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
      {"top_k", R"("top_k": 1e3)"},
      {"min_p", R"("min_p": "x")"},
      {"seed", R"("seed": 1.5)"},
      {"seed", R"("seed": "1")"},
      {"stop", R"("stop": 5)"},
      {"stop", R"("stop": ["a", 5])"},
      {"stream", R"("stream": 1)"},
      {"stream_options", R"("stream_options": true)"},
      {"include_usage", R"("stream_options": {"include_usage": 1})"},
      {"model", R"("model": 1)"},
      {"ignore_eos", R"("ignore_eos": "yes")"},
      {"logprobs", R"("logprobs": 0)"},
      {"echo", R"("echo": true)"},
      {"n", R"("n": 2)"},
      {"n", R"("n": 1000000000000000000000)"},
      {"best_of", R"("best_of": 2)"},
      {"suffix", R"("suffix": "x")"},
      {"presence_penalty", R"("presence_penalty": 1)"},
      {"frequency_penalty", R"("frequency_penalty": -0.5)"},
      {"logit_bias", R"("logit_bias": {"5": 1})"},
  };
  for (const BadField& row : rows) {
    const std::string body = std::string(R"({"prompt": "x", )") + row.member + "}";
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

TEST(ParseCompletionTest, NestingIsBounded) {
  const auto nested = [](int depth) {
    return R"({"prompt": "x", "user": )" + std::string(depth, '[') + std::string(depth, ']') + "}";
  };
  EXPECT_TRUE(Parse(nested(63)).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(Parse(nested(64)).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Parse(nested(1000000)).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Parse(std::string(1000000, '[')).status()));
  EXPECT_TRUE(Parse(R"({"prompt": ")" + std::string(1000, '[') + R"(\"{"})").ok());
}

TEST(ParseCompletionTest, TheNumberOfPromptsIsBounded) {
  std::string body = R"({"prompt": ["x")";
  for (int i = 1; i < 129; ++i) body += R"(, "x")";
  EXPECT_EQ(Field(Parse(body + "]}").status()), "prompt");
}

TEST(ParseTokenizeTest, ReadsAndRefuses) {
  EXPECT_EQ(ParseTokenize(R"({"prompt": "a", "model": "m"})")->text(), "a");
  EXPECT_EQ(Field(ParseTokenize("{}").status()), "prompt");
  EXPECT_EQ(Field(ParseTokenize(R"({"prompt": ["a"]})").status()), "prompt");
}

TEST(ParseDetokenizeTest, ReadsAndRefuses) {
  EXPECT_EQ(ParseDetokenize(R"({"tokens": [1, 2]})")->token_ids_size(), 2);
  EXPECT_EQ(Field(ParseDetokenize("{}").status()), "tokens");
  EXPECT_EQ(Field(ParseDetokenize(R"({"tokens": "a"})").status()), "tokens");
}

}  // namespace
}  // namespace hippodrome::json_requests_test
