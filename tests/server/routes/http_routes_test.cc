#include "server/routes/http_routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/testing/fake_model.h"
#include "tests/testing/http_client.h"
#include "tests/testing/routes_server.h"
#include "tests/testing/wait_until.h"

namespace hippodrome::http_routes_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// The routes behind a real server, over the fake engine.
class HttpRoutesTest : public testing::Test {
 protected:
  HttpRoutesTest() {
    BatcherOptions batcher;
    batcher.max_queue = 4;
    batcher.max_client_share = 1;
    Serve(batcher);
  }

  void Serve(const BatcherOptions& batcher) {
    server_.reset();
    std::vector<std::unique_ptr<ServedModel>> models;
    models.push_back(
        NewServedModel(NewFakeModel("m", {}, &engine_), batcher, EncodingOptions(), metrics_));
    server_ = std::make_unique<RoutesServer>(std::move(models), metrics_);
  }

  HttpAnswer Get(const std::string& path) { return HttpClient(server_->address()).Get(path); }
  HttpAnswer Complete(const std::string& body) {
    return HttpClient(server_->address()).Post("/v1/completions", body);
  }

  // The data of each event.
  static std::vector<std::string> Events(const std::string& body) {
    std::vector<std::string> events;
    for (size_t at = 0; at < body.size();) {
      const size_t end = body.find("\n\n", at);
      EXPECT_EQ(body.compare(at, 6, "data: "), 0);
      events.push_back(body.substr(at + 6, end - at - 6));
      at = end + 2;
    }
    return events;
  }

  Metrics metrics_;
  FakeEngine* engine_ = nullptr;
  std::unique_ptr<RoutesServer> server_;
};

TEST_F(HttpRoutesTest, ACompletion) {
  const HttpAnswer answer = Complete(R"({"prompt": "abc", "max_tokens": 5})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const json body = json::parse(answer.body);
  EXPECT_EQ(body["object"], "text_completion");
  EXPECT_EQ(body["model"], "m");
  EXPECT_EQ(body["id"].get<std::string>().rfind("cmpl-", 0), 0u);
  EXPECT_EQ(body["choices"][0]["text"], "abcab");
  EXPECT_EQ(body["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(body["usage"], json({{"prompt_tokens", 3},
                                 {"completion_tokens", 5},
                                 {"total_tokens", 8},
                                 {"prompt_tokens_details", {{"cached_tokens", 0}}}}));
}

TEST_F(HttpRoutesTest, AStreamGivesTheSameTextInEventsThatEndInDone) {
  const HttpAnswer answer = Complete(
      R"({"prompt": "h\u00e9llo", "max_tokens": 50, "stream": true,
          "stream_options": {"include_usage": true}})");
  ASSERT_EQ(answer.status, 200);
  EXPECT_EQ(answer.headers.at("content-type"), "text/event-stream");
  const std::vector<std::string> events = Events(answer.body);
  ASSERT_GE(events.size(), 3u);
  EXPECT_EQ(events.back(), "[DONE]");
  const json usage = json::parse(events[events.size() - 2]);
  EXPECT_TRUE(usage["choices"].empty());
  EXPECT_EQ(usage["usage"]["completion_tokens"], 50);
  std::string text;
  for (size_t i = 0; i + 2 < events.size(); ++i) {
    text += json::parse(events[i])["choices"][0]["text"].get<std::string>();
  }
  const json whole = json::parse(Complete(R"({"prompt": "h\u00e9llo", "max_tokens": 50})").body);
  EXPECT_EQ(text, whole["choices"][0]["text"]);
  EXPECT_EQ(json::parse(events[events.size() - 3])["choices"][0]["finish_reason"], "length");
}

TEST_F(HttpRoutesTest, SamplingFieldsAreNamedBeyondTheirRanges) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> bad = {
      {"temperature", {"-1e-45", "100.001", "1e300", "-1"}},
      {"top_k", {"-1", "1073741825", "4294967297", "9223372036854775807"}},
      {"top_p", {"0", "-0.0", "1e-60", "1.001", "1e300"}},
      {"min_p", {"-1e-45", "1.001"}}};
  for (const auto& [field, values] : bad) {
    for (const std::string& value : values) {
      const HttpAnswer answer = Complete(R"({"prompt": "a", ")" + field + "\": " + value + "}");
      EXPECT_EQ(answer.status, 400) << field << " " << value;
      EXPECT_EQ(json::parse(answer.body)["error"]["param"], field) << value;
    }
  }
  const std::vector<std::pair<std::string, std::vector<std::string>>> good = {
      {"temperature", {"0", "-0.0", "1e-60", "-1e-60", "100", "100.000001"}},
      {"top_k", {"0", "1073741824"}},
      {"top_p", {"1e-45", "1", "1.00000001"}},
      {"min_p", {"0", "-0.0", "-1e-60", "1"}},
      {"seed", {"-1", "0", "18446744073709551615"}}};
  for (const auto& [field, values] : good) {
    for (const std::string& value : values) {
      const HttpAnswer answer = Complete(R"({"prompt": "a", ")" + field + "\": " + value + "}");
      EXPECT_EQ(answer.status, 200) << field << " " << value << " " << answer.body;
    }
  }
}

TEST_F(HttpRoutesTest, WhatAHandlerThrowsIsAnInternalErrorThatCounts) {
  engine_->fault = FakeFault::kValidate;
  const HttpAnswer answer = Complete(R"({"prompt": "abc"})");
  EXPECT_EQ(answer.status, 500);
  EXPECT_THAT(answer.body, HasSubstr("std::bad_alloc"));
  EXPECT_THAT(Get("/metrics").body,
              HasSubstr("hippodrome_request_failures_total{reason=\"internal\"} 1"));
  EXPECT_EQ(Complete(R"({"prompt": "abc"})").status, 200);
}

TEST_F(HttpRoutesTest, TokensArriveOneByOne) {
  engine_->hold_decode = true;
  HttpClient client(server_->address());
  client.SendRequest("POST", "/v1/completions",
                     R"({"prompt": "abc", "max_tokens": 3, "stream": true})");
  int events = 0;
  client.Read([&](const std::string&) {
    if (++events == 1) engine_->hold_decode = false;
    return true;
  });
  EXPECT_GE(events, 2);
}

TEST_F(HttpRoutesTest, SeveralPromptsGiveSeveralChoices) {
  const json body = json::parse(Complete(R"({"prompt": ["ab", "xyz"], "max_tokens": 4})").body);
  ASSERT_EQ(body["choices"].size(), 2u);
  EXPECT_EQ(body["choices"][0]["text"], "abab");
  EXPECT_EQ(body["choices"][1]["text"], "xyzx");
  EXPECT_EQ(body["choices"][1]["index"], 1);
  EXPECT_EQ(body["usage"]["prompt_tokens"], 5);
  EXPECT_EQ(body["usage"]["completion_tokens"], 8);
}

// Choices are numbered prompt by prompt, and a prompt counts once.
TEST_F(HttpRoutesTest, SeveralChoicesForEachPrompt) {
  const json body =
      json::parse(Complete(R"({"prompt": ["ab", "xyz"], "max_tokens": 4, "n": 2})").body);
  ASSERT_EQ(body["choices"].size(), 4u) << body;
  const std::vector<std::string> texts = {"abab", "abab", "xyzx", "xyzx"};
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(body["choices"][i]["text"], texts[i]);
    EXPECT_EQ(body["choices"][i]["index"], i);
  }
  EXPECT_EQ(body["usage"], json({{"prompt_tokens", 5},
                                 {"completion_tokens", 16},
                                 {"total_tokens", 21},
                                 {"prompt_tokens_details", {{"cached_tokens", 0}}}}));
}

TEST_F(HttpRoutesTest, AnEchoComesFirst) {
  const std::string prompts = R"({"prompt": ["ab", "x"], "max_tokens": 3, "echo": true)";
  const json body = json::parse(Complete(prompts + "}").body);
  EXPECT_EQ(body["choices"][0]["text"], "ababa");
  EXPECT_EQ(body["choices"][1]["text"], "xxxx");
  std::vector<std::string> texts(2);
  for (const std::string& event : Events(Complete(prompts + R"(, "stream": true})").body)) {
    if (event == "[DONE]") continue;
    const json choice = json::parse(event)["choices"][0];
    texts[choice["index"].get<size_t>()] += choice["text"].get<std::string>();
  }
  EXPECT_EQ(texts, (std::vector<std::string>{"ababa", "xxxx"}));
  const json ids =
      json::parse(Complete(R"({"prompt": [195], "max_tokens": 1, "echo": true})").body);
  EXPECT_EQ(ids["choices"][0]["text"], "\uFFFD\uFFFD");
}

TEST_F(HttpRoutesTest, APromptMayBeEchoedAlone) {
  const json body =
      json::parse(Complete(R"({"prompt": "abc", "max_tokens": 0, "echo": true})").body);
  EXPECT_EQ(body["choices"][0]["text"], "abc");
  EXPECT_EQ(body["choices"][0]["token_ids"], json::array());
  EXPECT_EQ(body["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(body["usage"], json({{"prompt_tokens", 3},
                                 {"completion_tokens", 0},
                                 {"total_tokens", 3},
                                 {"prompt_tokens_details", {{"cached_tokens", 0}}}}));
}

TEST_F(HttpRoutesTest, UsageIsNullUntilItIsKnown) {
  const std::string stream = R"({"prompt": "abc", "max_tokens": 2, "stream": true)";
  const std::vector<std::string> with =
      Events(Complete(stream + R"(, "stream_options": {"include_usage": true}})").body);
  ASSERT_EQ(with.size(), 4u);
  EXPECT_TRUE(json::parse(with[0])["usage"].is_null());
  EXPECT_TRUE(json::parse(with[0]).contains("usage"));
  EXPECT_EQ(json::parse(with[2])["usage"]["total_tokens"], 5);
  const std::vector<std::string> without =
      Events(Complete(stream + R"(, "stream_options": null})").body);
  EXPECT_FALSE(json::parse(without[0]).contains("usage"));
}

TEST_F(HttpRoutesTest, ChatsAreToldWhatToUse) {
  const HttpAnswer answer =
      HttpClient(server_->address()).Post("/v1/chat/completions", R"({"messages": []})");
  EXPECT_EQ(answer.status, 404);
  EXPECT_THAT(answer.body, HasSubstr("/v1/completions"));
}

TEST_F(HttpRoutesTest, TheTokenizerIsDescribed) {
  const json info = json::parse(Get("/tokenizer_info").body);
  EXPECT_EQ(info["eos_token"], "<|endoftext|>");
  EXPECT_EQ(info["eos_token_id"], 256);
  EXPECT_TRUE(info["chat_template"].is_null());
  EXPECT_EQ(info["vocab_size"], 257);
}

TEST_F(HttpRoutesTest, TokenIdsAndStopStrings) {
  const json body =
      json::parse(Complete(R"({"prompt": [97, 98, 99], "max_tokens": 9, "stop": "ca"})").body);
  EXPECT_EQ(body["choices"][0]["text"], "ab");
  EXPECT_EQ(body["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(body["choices"][0]["token_ids"], json({97, 98, 99, 97}));
}

TEST_F(HttpRoutesTest, ErrorsHaveTheRightStatusAndName) {
  struct Row {
    const char* body;
    int status;
    json param;
  };
  const Row rows[] = {
      {R"({"prompt": "x", "top_p": 2})", 400, "top_p"},
      {R"({"prompt": "x", "temperature": 1e39})", 400, "temperature"},
      {R"({"prompt": "x", "max_completion_tokens": 1})", 400, "max_completion_tokens"},
      {R"({"prompt": "x", "prompt": "y"})", 400, "prompt"},
      {R"({"prompt": "x", "model": "no"})", 404, nullptr},
      {R"({"prompt": [500]})", 400, "prompt"},
      {R"({"prompt": []})", 400, "prompt"},
      {R"({"prompt": "x", "max_tokens": 100000})", 400, nullptr},
      {R"({"prompt")", 400, nullptr},
  };
  for (const Row& row : rows) {
    const HttpAnswer answer = Complete(row.body);
    EXPECT_EQ(answer.status, row.status) << row.body;
    EXPECT_EQ(json::parse(answer.body)["error"]["param"], row.param) << answer.body;
  }
  EXPECT_EQ(server_->handlers().pending(), 0);
}

TEST_F(HttpRoutesTest, AFullQueueSaysWhenToTryAgain) {
  engine_->hold_prefill = true;
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (int i = 0; i < 8; ++i) {
    clients.push_back(std::make_unique<HttpClient>(server_->address()));
    clients.back()->SendRequest("POST", "/v1/completions", R"({"prompt": "x"})");
    ASSERT_TRUE(WaitUntil([&] { return server_->handlers().pending() == i + 1; }));
    ASSERT_TRUE(WaitUntil([&] { return engine_->used_slots == std::min(i + 1, 4); }));
  }
  const HttpAnswer answer = Complete(R"({"prompt": "x"})");
  EXPECT_EQ(answer.status, 429);
  EXPECT_EQ(answer.headers.at("retry-after"), "1");
  engine_->hold_prefill = false;
  for (const auto& client : clients) EXPECT_EQ(client->Read().status, 200);
}

TEST_F(HttpRoutesTest, WhoWaitsForTooLongIsToldWhenToTryAgain) {
  BatcherOptions batcher;
  batcher.max_wait = std::chrono::milliseconds(1);
  Serve(batcher);
  engine_->hold_prefill = true;
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (int i = 0; i < 4; ++i) {
    clients.push_back(std::make_unique<HttpClient>(server_->address()));
    clients.back()->SendRequest("POST", "/v1/completions", R"({"prompt": "x", "max_tokens": 4})");
    ASSERT_TRUE(WaitUntil([&] { return engine_->used_slots == i + 1; }));
  }
  const HttpAnswer answer = Complete(R"({"prompt": "x"})");
  EXPECT_EQ(answer.status, 429);
  EXPECT_EQ(answer.headers.at("retry-after"), "1");
  EXPECT_THAT(answer.body, HasSubstr("in the queue"));
  engine_->hold_prefill = false;
  for (const auto& client : clients) EXPECT_EQ(client->Read().status, 200);
}

TEST_F(HttpRoutesTest, ADisconnectFreesEverything) {
  engine_->hold_decode = true;
  for (const char* stream : {"true", "false"}) {
    HttpClient client(server_->address());
    client.SendRequest("POST", "/v1/completions",
                       std::string(R"({"prompt": "x", "stream": )") + stream + "}");
    ASSERT_TRUE(WaitUntil([&] { return engine_->used_slots == 1; }));
    client.Close();
    EXPECT_TRUE(WaitUntil([&] { return engine_->used_slots == 0 && engine_->used_pages == 0; }));
  }
  EXPECT_TRUE(WaitUntil([&] { return metrics_.Text().find("code=\"499\"") != std::string::npos; }));
}

TEST_F(HttpRoutesTest, AnAbortedStreamEndsInAnError) {
  engine_->hold_decode = true;
  HttpClient client(server_->address());
  client.SendRequest("POST", "/v1/completions", R"({"prompt": "x", "stream": true})");
  const HttpAnswer answer = client.Read([&](const std::string&) {
    server_->handlers().Abort();
    return true;
  });
  const std::vector<std::string> events = Events(answer.body);
  EXPECT_EQ(json::parse(events.back())["error"]["code"], "unavailable");
}

TEST_F(HttpRoutesTest, TokenizeAndDetokenize) {
  HttpClient client(server_->address());
  EXPECT_EQ(client.Post("/tokenize", R"({"prompt": "ab"})").body,
            R"({"tokens":[97,98],"count":2,"max_model_len":null})");
  EXPECT_EQ(client.Post("/tokenize", R"({"prompt": "<|endoftext|>"})").body,
            R"({"tokens":[256],"count":1,"max_model_len":null})");
  EXPECT_EQ(client.Post("/detokenize", R"({"tokens": [97, 98]})").body, R"({"prompt":"ab"})");
  EXPECT_EQ(client.Post("/detokenize", R"({"tokens": [999]})").status, 400);
}

TEST_F(HttpRoutesTest, ALongPromptIsTokenizedToo) {
  const std::string text(1 << 20, 'a');
  const HttpAnswer answer =
      HttpClient(server_->address()).Post("/tokenize", R"({"prompt": ")" + text + "\"}");
  EXPECT_EQ(json::parse(answer.body)["count"], 1 << 20);
}

TEST_F(HttpRoutesTest, TheOtherRoutes) {
  const json models = json::parse(Get("/v1/models").body);
  EXPECT_EQ(models["data"][0]["id"], "m");
  EXPECT_EQ(json::parse(Get("/v1/models/m").body), models["data"][0]);
  EXPECT_EQ(Get("/v1/models/other").status, 404);
  EXPECT_EQ(Get("/health").status, 200);
  EXPECT_EQ(Get("/ready").status, 200);
  EXPECT_THAT(Get("/version").body, HasSubstr("\"version\""));
  EXPECT_EQ(Get("/nothing").status, 404);
  const HttpAnswer wrong = Get("/v1/completions");
  EXPECT_EQ(wrong.status, 405);
  EXPECT_EQ(wrong.headers.at("allow"), "POST, OPTIONS");
  server_->handlers().Close();
  EXPECT_EQ(Get("/ready").status, 503);
  EXPECT_EQ(Get("/health").status, 200);
  EXPECT_EQ(Complete(R"({"prompt": "x"})").status, 503);
}

TEST_F(HttpRoutesTest, RequestsAreCountedUnderThePatternOfTheirRoute) {
  Get("/v1/models/m?x=1");
  Get("/v1/models/%6d");
  Get("/v1/models/other");
  const std::string text = Get("/metrics").body;
  EXPECT_THAT(text, HasSubstr("route=\"/v1/models/{id}\"} 2\n"));
  EXPECT_THAT(text, testing::Not(HasSubstr("/v1/models/other")));
}

TEST_F(HttpRoutesTest, RootIsAPageForBrowsersAndARouteForClients) {
  const HttpAnswer page = Get("/");
  EXPECT_EQ(page.status, 200);
  EXPECT_THAT(page.headers.at("content-type"), HasSubstr("text/html"));
  EXPECT_THAT(page.body, HasSubstr("</html>"));
  HttpClient client(server_->address());
  client.Send("GET / HTTP/1.1\r\nHost: h\r\nIf-None-Match: " + page.headers.at("etag") +
              "\r\n\r\n");
  const HttpAnswer same = client.Read();
  EXPECT_EQ(same.status, 304);
  EXPECT_EQ(same.headers.at("content-length"), "");
  EXPECT_EQ(client.Get("/health").status, 200);  // nothing came behind the 304
  EXPECT_EQ(client.Post("/", "{}").headers.at("content-type"), "application/json");
}

TEST_F(HttpRoutesTest, MetricsCountRequestsAndTokens) {
  Complete(R"({"prompt": "abc", "max_tokens": 5})");
  Complete(R"({"prompt": "x", "n": 129})");
  const HttpAnswer answer = Get("/metrics");
  EXPECT_THAT(answer.headers.at("content-type"), HasSubstr("text/plain"));
  EXPECT_THAT(answer.body, HasSubstr("hippodrome_prompt_tokens_total{model=\"m\"} 3\n"));
  EXPECT_THAT(answer.body, HasSubstr("hippodrome_generated_tokens_total{model=\"m\"} 5\n"));
  EXPECT_THAT(answer.body, HasSubstr("hippodrome_request_failures_total{reason=\"validation\"} 1"));
}

}  // namespace
}  // namespace hippodrome::http_routes_test
