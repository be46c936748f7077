#include "server/routes/completion_work.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/testing/fake_model.h"
#include "tests/testing/http_client.h"
#include "tests/testing/routes_server.h"
#include "tests/testing/wait_until.h"

namespace hippodrome::completion_work_test {
namespace {

using nlohmann::json;

// The routes behind a real server, over the fake engine.
class CompletionWorkTest : public testing::Test {
 protected:
  CompletionWorkTest() {
    std::vector<std::unique_ptr<ServedModel>> models;
    models.push_back(NewServedModel(NewFakeModel("m", {.slots = 16}, &engine_), metrics_));
    models.push_back(NewServedModel(NewFakeModel("ids", {}, nullptr, false), metrics_));
    server_ = std::make_unique<RoutesServer>(std::move(models), metrics_);
  }

  HttpAnswer Post(const std::string& body) {
    return HttpClient(server_->address()).Post("/v1/completions", body);
  }
  json Complete(const json& request) {
    const HttpAnswer answer = Post(request.dump());
    EXPECT_EQ(answer.status, 200) << answer.body;
    return json::parse(answer.body);
  }

  // The lists of all events of choice 0, joined, and its text.
  json Streamed(json request) {
    request["stream"] = true;
    json joined = {{"text", ""}};
    const std::string body = Post(request.dump()).body;
    for (size_t at = 0; at < body.size();) {
      const size_t end = body.find("\n\n", at);
      const std::string data = body.substr(at + 6, end - at - 6);
      at = end + 2;
      if (data == "[DONE]") continue;
      const json choice = json::parse(data)["choices"][0];
      joined["text"] = joined["text"].get<std::string>() + choice["text"].get<std::string>();
      for (const auto& [name, list] : choice["logprobs"].items()) {
        for (const json& entry : list) joined["logprobs"][name].push_back(entry);
      }
    }
    return joined;
  }

  Metrics metrics_;
  FakeEngine* engine_ = nullptr;
  std::unique_ptr<RoutesServer> server_;
};

double Expected(int32_t previous, int32_t token) { return FakeLogProbability(previous, token); }

// What lm-evaluation-harness asks for, and how it reads the answer.
TEST_F(CompletionWorkTest, AnEchoWithLogProbabilitiesHasAPlaceForEveryToken) {
  const std::vector<std::vector<int32_t>> prompts = {{10, 11, 30}, {5}, {97, 98, 195, 169, 98}};
  const json answer = Complete({{"model", "m"},
                                {"prompt", prompts},
                                {"temperature", 0},
                                {"max_tokens", 1},
                                {"logprobs", 1},
                                {"seed", 1234},
                                {"echo", true}});
  ASSERT_EQ(answer["choices"].size(), 3u);
  for (size_t p = 0; p < prompts.size(); ++p) {
    const std::vector<int32_t>& prompt = prompts[p];
    const json& lists = answer["choices"][p]["logprobs"];
    for (const char* name : {"tokens", "token_logprobs", "top_logprobs", "text_offset"}) {
      ASSERT_EQ(lists[name].size(), prompt.size() + 1) << name;
    }
    EXPECT_TRUE(lists["token_logprobs"][0].is_null());
    EXPECT_TRUE(lists["top_logprobs"][0].is_null());
    for (size_t t = 1; t < prompt.size(); ++t) {
      EXPECT_EQ(lists["token_logprobs"][t].get<double>(), Expected(prompt[t - 1], prompt[t]));
      double most = -1e9;
      for (const json& value : lists["top_logprobs"][t]) most = std::max(most, value.get<double>());
      EXPECT_EQ(most, Expected(prompt[t - 1], prompt[t - 1] + 1));
      // Exact equality, as the harness tests for it.
      EXPECT_EQ(lists["token_logprobs"][t] == most, prompt[t] == prompt[t - 1] + 1);
    }
  }
  EXPECT_EQ(answer["choices"][2]["text"], "ab\u00e9ba");
  EXPECT_EQ(answer["choices"][2]["logprobs"]["text_offset"], json({0, 1, 2, 2, 3, 4}));
  EXPECT_EQ(answer["choices"][2]["logprobs"]["tokens"],
            json({"a", "b", "bytes:\\xc3", "bytes:\\xa9", "b", "a"}));
}

TEST_F(CompletionWorkTest, TheEndOfTextIsListed) {
  const json choice = Complete(
      {{"prompt", {97, 256}}, {"max_tokens", 5}, {"logprobs", 0}, {"echo", true}})["choices"][0];
  EXPECT_EQ(choice["finish_reason"], "stop");
  EXPECT_EQ(choice["text"], "a<|endoftext|>a");
  EXPECT_EQ(choice["logprobs"]["tokens"], json({"a", "<|endoftext|>", "a", "<|endoftext|>"}));
  EXPECT_EQ(choice["logprobs"]["text_offset"], json({0, 1, 14, 15}));
  EXPECT_EQ(choice["logprobs"]["top_logprobs"][3], json({{"<|endoftext|>", Expected(97, 256)}}));
}

TEST_F(CompletionWorkTest, StreamedLogProbabilitiesAreTheSame) {
  for (const bool echo : {false, true}) {
    const json request = {{"prompt", "h\u00e9llo"},
                          {"max_tokens", 40},
                          {"logprobs", 3},
                          {"echo", echo},
                          {"stop", "oh"}};
    json whole = Complete(request)["choices"][0];
    const json streamed = Streamed(request);
    EXPECT_EQ(streamed["text"], whole["text"]);
    EXPECT_EQ(streamed["logprobs"], whole["logprobs"]);
    // The tokens that make the stop string are there, their text is not.
    EXPECT_EQ(whole["text"], echo ? "h\u00e9lloh\u00e9ll" : "h\u00e9ll");
    EXPECT_EQ(whole["logprobs"]["tokens"].back(), "h");
  }
}

TEST_F(CompletionWorkTest, APromptAloneIsScored) {
  const json request = {{"prompt", "abd"}, {"max_tokens", 0}, {"logprobs", 1}, {"echo", true}};
  const json answer = Complete(request);
  const json& lists = answer["choices"][0]["logprobs"];
  EXPECT_EQ(lists["token_logprobs"], json({nullptr, Expected('a', 'b'), Expected('b', 'd')}));
  EXPECT_EQ(answer["usage"]["completion_tokens"], 0);
  EXPECT_EQ(Streamed(request)["logprobs"], lists);
}

TEST_F(CompletionWorkTest, WithoutTokenizerTokensHaveNumbers) {
  const json choice = Complete({{"model", "ids"},
                                {"prompt", {7, 8}},
                                {"max_tokens", 1},
                                {"logprobs", 1},
                                {"echo", true}})["choices"][0];
  EXPECT_EQ(choice["text"], "");
  EXPECT_EQ(choice["logprobs"]["tokens"], json({"token_id:7", "token_id:8", "token_id:7"}));
}

TEST_F(CompletionWorkTest, TheBestOfSeveralAreTheLikeliest) {
  // The fake engine draws nothing: its candidates are equal, and as many as were asked for.
  const json answer =
      Complete({{"prompt", {"ab", "x"}}, {"max_tokens", 4}, {"n", 2}, {"best_of", 5}});
  ASSERT_EQ(answer["choices"].size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(answer["choices"][i]["index"], i);
    EXPECT_TRUE(answer["choices"][i]["logprobs"].is_null());
    EXPECT_EQ(answer["choices"][i]["text"], i < 2 ? "abab" : "xxxx");
  }
  EXPECT_EQ(answer["usage"]["completion_tokens"], 40);
  EXPECT_EQ(answer["usage"]["prompt_tokens"], 3);
}

TEST_F(CompletionWorkTest, TooManyLogProbabilitiesAreRefusedWithTheNumbers) {
  const HttpAnswer answer = Post(R"({"prompt": "x", "max_tokens": 1000, "logprobs": 20, "n": 60})");
  EXPECT_EQ(answer.status, 400);
  EXPECT_NE(answer.body.find("1260000"), std::string::npos) << answer.body;
}

// While the answer is made and sent, it takes as much as before.
TEST_F(CompletionWorkTest, LogProbabilitiesCountUntilTheAnswerHasGone) {
  const auto held = [&](int64_t bytes) {
    return metrics_.Text().find("hippodrome_log_probability_bytes{model=\"m\"} " +
                                std::to_string(bytes) + "\n") != std::string::npos;
  };
  HttpReply reply = server_->routes().Handle(
      {.method = "POST",
       .path = "/v1/completions",
       .body = R"({"prompt": ["abc", "d"], "max_tokens": 3, "logprobs": 1, "echo": true})"});
  ASSERT_NE(reply.work, nullptr);
  EXPECT_TRUE(WaitUntil([&] { return reply.work->Advance(reply.response); }));
  EXPECT_EQ(json::parse(reply.response.body)["choices"].size(), 2u);
  EXPECT_TRUE(held((6 + 4) * (800 + 240)));
  reply.work.reset();
  EXPECT_TRUE(held(0));
}

}  // namespace
}  // namespace hippodrome::completion_work_test
