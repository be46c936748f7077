#include "server/routes/tgi_routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/testing/fake_model.h"
#include "tests/testing/http_client.h"
#include "tests/testing/routes_server.h"

namespace hippodrome::tgi_routes_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// The routes behind a real server, over the engine that repeats its prompts.
class TgiRoutesTest : public testing::Test {
 protected:
  TgiRoutesTest() {
    std::vector<std::unique_ptr<ServedModel>> models;
    models.push_back(NewServedModel(NewFakeModel("m", {}, &engine_), metrics_));
    server_ = std::make_unique<RoutesServer>(std::move(models), metrics_);
  }

  HttpAnswer Post(const std::string& path, const json& body) {
    return HttpClient(server_->address()).Post(path, body.dump());
  }
  static json Body(const std::string& inputs, const json& parameters) {
    return {{"inputs", inputs}, {"parameters", parameters}};
  }
  static std::vector<json> Events(const std::string& body) {
    std::vector<json> events;
    for (size_t at = 0; at < body.size();) {
      const size_t end = body.find("\n\n", at);
      EXPECT_EQ(body.compare(at, 5, "data:"), 0);
      events.push_back(json::parse(body.substr(at + 5, end - at - 5)));
      at = end + 2;
    }
    return events;
  }

  Metrics metrics_;
  FakeEngine* engine_ = nullptr;
  std::unique_ptr<RoutesServer> server_;
};

TEST_F(TgiRoutesTest, AWholeAnswerWithDetails) {
  const HttpAnswer answer =
      Post("/generate", Body("abc", {{"max_new_tokens", 4}, {"details", true}, {"seed", 7}}));
  ASSERT_EQ(answer.status, 200) << answer.body;
  const json body = json::parse(answer.body);
  EXPECT_EQ(body["generated_text"], "abca");
  const json& details = body["details"];
  EXPECT_EQ(details["finish_reason"], "length");
  EXPECT_EQ(details["generated_tokens"], 4);
  EXPECT_EQ(details["seed"], nullptr);  // greedy
  EXPECT_TRUE(details["prefill"].empty());
  ASSERT_EQ(details["tokens"].size(), 4u);
  EXPECT_EQ(details["tokens"][1]["id"], 'b');
  EXPECT_EQ(details["tokens"][1]["text"], "b");
  EXPECT_EQ(details["tokens"][1]["special"], false);
  EXPECT_EQ(answer.headers.at("x-prompt-tokens"), "3");
  EXPECT_EQ(answer.headers.at("x-generated-tokens"), "4");
  EXPECT_EQ(answer.headers.at("x-compute-characters"), "3");
  EXPECT_EQ(answer.headers.count("x-total-time"), 1u);
}

TEST_F(TgiRoutesTest, WithoutDetailsThereIsTheTextAlone) {
  const json whole = json::parse(Post("/generate", Body("abc", {{"max_new_tokens", 4}})).body);
  EXPECT_EQ(whole, json({{"generated_text", "abca"}}));
  const json full = json::parse(
      Post("/generate", Body("abc", {{"max_new_tokens", 4}, {"return_full_text", true}})).body);
  EXPECT_EQ(full["generated_text"], "abcabca");
}

TEST_F(TgiRoutesTest, SamplingTellsItsSeed) {
  for (const json& sampling :
       {json({{"do_sample", true}}), json({{"temperature", 0.5}}), json({{"top_k", 5}}),
        json({{"top_p", 0.5}}), json({{"typical_p", 0.5}})}) {
    json parameters = sampling;
    parameters.update({{"max_new_tokens", 2}, {"details", true}});
    const json drawn = json::parse(Post("/generate", Body("abc", parameters)).body);
    EXPECT_TRUE(drawn["details"]["seed"].is_number_unsigned()) << parameters;
    parameters["seed"] = 7;
    const json given = json::parse(Post("/generate", Body("abc", parameters)).body);
    EXPECT_EQ(given["details"]["seed"], 7) << parameters;
  }
}

TEST_F(TgiRoutesTest, TheEndHasThreeReasons) {
  const json stopped = json::parse(
      Post("/generate", Body("abc", {{"max_new_tokens", 9}, {"details", true}, {"stop", {"ca"}}}))
          .body);
  EXPECT_EQ(stopped["generated_text"], "ab");
  EXPECT_EQ(stopped["details"]["finish_reason"], "stop_sequence");
  EXPECT_EQ(stopped["details"]["generated_tokens"], 4);
}

TEST_F(TgiRoutesTest, TruncateKeepsTheEndOfThePrompt) {
  const HttpAnswer answer =
      Post("/generate",
           Body("abcdef", {{"max_new_tokens", 4}, {"truncate", 2}, {"return_full_text", true}}));
  EXPECT_EQ(json::parse(answer.body)["generated_text"], "abcdefefef");
  EXPECT_EQ(answer.headers.at("x-prompt-tokens"), "2");
  const HttpAnswer longer = Post("/generate", Body("ab", {{"max_new_tokens", 1}, {"truncate", 9}}));
  EXPECT_EQ(longer.headers.at("x-prompt-tokens"), "2");
}

double Expected(char previous, char token) { return FakeLogProbability(previous, token); }

TEST_F(TgiRoutesTest, DetailsHaveLogProbabilities) {
  const json details = json::parse(Post("/generate", Body("abd", {{"max_new_tokens", 2},
                                                                  {"details", true},
                                                                  {"decoder_input_details", true},
                                                                  {"top_n_tokens", 2}}))
                                       .body)["details"];
  EXPECT_EQ(details["tokens"][0]["logprob"], Expected('d', 'a'));
  EXPECT_EQ(details["tokens"][1]["logprob"], Expected('a', 'b'));
  EXPECT_EQ(details["prefill"],
            json({{{"id", 'a'}, {"text", "a"}, {"logprob", nullptr}},
                  {{"id", 'b'}, {"text", "b"}, {"logprob", Expected('a', 'b')}},
                  {{"id", 'd'}, {"text", "d"}, {"logprob", Expected('b', 'd')}}}));
  ASSERT_EQ(details["top_tokens"].size(), 2u);
  const json& top = details["top_tokens"][0];
  ASSERT_EQ(top.size(), 2u);
  EXPECT_EQ(
      top[0],
      json({{"id", 'e'}, {"text", "e"}, {"logprob", Expected('d', 'e')}, {"special", false}}));
}

TEST_F(TgiRoutesTest, ThePrefillIsOfWhatWasKept) {
  const json details =
      json::parse(Post("/generate", Body("abcd", {{"max_new_tokens", 1},
                                                  {"truncate", 2},
                                                  {"details", true},
                                                  {"decoder_input_details", true}}))
                      .body)["details"];
  ASSERT_EQ(details["prefill"].size(), 2u);
  EXPECT_EQ(details["prefill"][1]["logprob"], Expected('c', 'd'));
}

TEST_F(TgiRoutesTest, TheBestOfSeveralHasTheOthersInItsDetails) {
  const json body = json::parse(
      Post("/generate",
           Body("ab",
                {{"max_new_tokens", 3}, {"do_sample", true}, {"best_of", 3}, {"details", true}}))
          .body);
  EXPECT_EQ(body["generated_text"], "aba");
  const json& others = body["details"]["best_of_sequences"];
  ASSERT_EQ(others.size(), 2u);
  for (const json& other : others) {
    EXPECT_EQ(other["generated_text"], "aba");
    EXPECT_EQ(other["finish_reason"], "length");
    EXPECT_EQ(other["tokens"], body["details"]["tokens"]);
    EXPECT_NE(other["seed"], body["details"]["seed"]);
  }
  EXPECT_NE(others[0]["seed"], others[1]["seed"]);
}

TEST_F(TgiRoutesTest, StreamsHaveLogProbabilitiesAndAlternatives) {
  const std::vector<json> events = Events(
      Post("/generate_stream", Body("ab", {{"max_new_tokens", 2}, {"top_n_tokens", 1}})).body);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[1]["token"]["logprob"], Expected('a', 'b'));
  ASSERT_EQ(events[1]["top_tokens"].size(), 1u);
  EXPECT_EQ(events[1]["top_tokens"][0]["id"], 'b');
  for (const auto& [name, parameters] :
       {std::pair("best_of", json({{"best_of", 2}, {"do_sample", true}})),
        std::pair("decoder_input_details",
                  json({{"decoder_input_details", true}, {"details", true}}))}) {
    const HttpAnswer answer = Post("/generate_stream", Body("ab", parameters));
    EXPECT_EQ(answer.status, 400) << name;
    EXPECT_THAT(answer.body, HasSubstr(name));
  }
}

TEST_F(TgiRoutesTest, AStreamHasAnEventForEachToken) {
  const HttpAnswer answer =
      Post("/generate_stream", Body("h\u00e9llo", {{"max_new_tokens", 12}, {"details", true}}));
  ASSERT_EQ(answer.status, 200);
  EXPECT_EQ(answer.headers.at("content-type"), "text/event-stream");
  const std::vector<json> events = Events(answer.body);
  ASSERT_EQ(events.size(), 12u);
  std::string text;
  for (size_t i = 0; i < events.size(); ++i) {
    EXPECT_EQ(events[i]["index"], i + 1);
    text += events[i]["token"]["text"].get<std::string>();
    if (i + 1 == events.size()) continue;
    EXPECT_EQ(events[i]["generated_text"], nullptr);
    EXPECT_EQ(events[i]["details"], nullptr);
  }
  EXPECT_EQ(events.back()["generated_text"], text);
  EXPECT_EQ(text, "h\u00e9lloh\u00e9llo");
  EXPECT_EQ(events.back()["details"]["finish_reason"], "length");
  EXPECT_EQ(events.back()["details"]["generated_tokens"], 12);
}

TEST_F(TgiRoutesTest, TheRootStreamsIfItIsAsked) {
  json body = Body("abc", {{"max_new_tokens", 2}});
  const json whole = json::parse(Post("/", body).body);
  EXPECT_EQ(whole, json::parse(R"([{"generated_text": "ab"}])"));
  body["stream"] = true;
  EXPECT_EQ(Events(Post("/", body).body).size(), 2u);
}

TEST_F(TgiRoutesTest, WhatIsNotSupportedIsRefusedByName) {
  const std::vector<std::pair<std::string, json>> refused = {
      {"watermark", true},      {"grammar", {{"type", "json"}}},
      {"adapter_id", "a"},      {"best_of", 2},
      {"best_of", 1000},        {"decoder_input_details", true},
      {"top_n_tokens", 21},     {"repetition_penalty", 0},
      {"frequency_penalty", 3}, {"typical_p", 0},
      {"max_tokens", 3},        {"presence_penalty", 1},
      {"min_p", 0.5},           {"max_new_tokens", 0},
      {"truncate", 0},          {"top_k", "x"},
      {"top_p", 1.5},           {"temperature", -1}};
  for (const auto& [name, value] : refused) {
    const HttpAnswer answer = Post("/generate", Body("abc", {{name, value}}));
    EXPECT_EQ(answer.status, 400) << name;
    const json body = json::parse(answer.body);
    EXPECT_EQ(body["error_type"], "validation") << name;
    EXPECT_THAT(body["error"].get<std::string>(), HasSubstr(name + ":"));
  }
  // Values that ask for nothing, as clients send them.
  const json nothing = {{"watermark", false},          {"grammar", nullptr},
                        {"adapter_id", nullptr},       {"best_of", 1},
                        {"typical_p", nullptr},        {"repetition_penalty", 1.0},
                        {"frequency_penalty", 0},      {"decoder_input_details", false},
                        {"top_n_tokens", nullptr},     {"stop", json::array()},
                        {"max_new_tokens", 1},         {"do_sample", false},
                        {"return_full_text", nullptr}, {"details", nullptr}};
  EXPECT_EQ(Post("/generate", Body("abc", nothing)).status, 200);
}

TEST_F(TgiRoutesTest, ErrorsAreTextsWithATypeInStreamsToo) {
  for (const json& body : {json({{"inputs", ""}}), json({{"parameters", json::object()}}),
                           json({{"inputs", "a"}, {"other", 1}})}) {
    const HttpAnswer answer = Post("/generate_stream", body);
    EXPECT_EQ(answer.status, 400) << body;
    EXPECT_EQ(json::parse(answer.body)["error_type"], "validation");
  }
  engine_->hold_decode = true;
  HttpClient client(server_->address());
  client.SendRequest("POST", "/generate_stream", Body("abc", {{"max_new_tokens", 9}}).dump());
  const HttpAnswer answer = client.Read([&](const std::string&) {
    server_->handlers().Abort();
    return true;
  });
  EXPECT_EQ(Events(answer.body).back()["error_type"], "overloaded");
}

TEST_F(TgiRoutesTest, AFaultOfTheEngineIsAGenerationError) {
  engine_->fault = FakeFault::kPrefill;
  const HttpAnswer answer = Post("/generate", Body("abc", {{"max_new_tokens", 1}}));
  EXPECT_EQ(answer.status, 500);
  EXPECT_EQ(json::parse(answer.body)["error_type"], "generation");
}

}  // namespace
}  // namespace hippodrome::tgi_routes_test
