#include "server/routes/state_routes.h"

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "tests/testing/fake_model.h"
#include "tests/testing/http_client.h"
#include "tests/testing/routes_server.h"
#include "tests/testing/state_stores.h"

namespace hippodrome::state_routes_test {
namespace {

using nlohmann::json;

constexpr char kUnknown[] = "00000000000000000000000000000000";

// The routes behind a real server, over the fake engine.
class StateRoutesTest : public testing::Test {
 protected:
  StateRoutesTest() {
    std::vector<std::unique_ptr<ServedModel>> models;
    models.push_back(NewServedModel(NewFakeModel("m", {.slots = 16}, &engine_), metrics_));
    server_ = std::make_unique<RoutesServer>(std::move(models), metrics_);
  }

  HttpAnswer Ask(const std::string& method, const std::string& path, const std::string& body = "") {
    HttpClient client(server_->address());
    client.SendRequest(method, path, body);
    return client.Read();
  }
  HttpAnswer Post(const json& request) { return Ask("POST", "/v1/completions", request.dump()); }
  json Complete(const json& request) {
    const HttpAnswer answer = Post(request);
    EXPECT_EQ(answer.status, 200) << answer.body;
    return json::parse(answer.body);
  }
  // The state behind three tokens of "abcdefgh".
  json NewState(const std::string& form = "handle") {
    return Complete({{"prompt", "abcdefgh"}, {"max_tokens", 3}, {"return_state", form}})["state"];
  }

  Metrics metrics_;
  FakeEngine* engine_ = nullptr;
  std::unique_ptr<RoutesServer> server_;
};

TEST_F(StateRoutesTest, AnAnswerGoesOnWhereItEnded) {
  const json whole = Complete({{"prompt", "abcdefgh"}, {"max_tokens", 7}})["choices"][0];
  const json first =
      Complete({{"prompt", "abcdefgh"}, {"max_tokens", 3}, {"return_state", "handle"}});
  const json& state = first["state"];
  EXPECT_EQ(state["position"], 10);
  EXPECT_EQ(state["exact"], true);
  EXPECT_GT(state["bytes"], 100);
  EXPECT_FALSE(state.contains("data"));
  const json second = Complete({{"state", state["handle"]}, {"max_tokens", 4}});
  json ids = first["choices"][0]["token_ids"];
  for (const json& id : second["choices"][0]["token_ids"]) ids.push_back(id);
  // The fake engine repeats all that it was given.
  const json again = Complete({{"prompt", "abcdefghabc"}, {"max_tokens", 4}})["choices"][0];
  EXPECT_EQ(second["choices"][0]["token_ids"], again["token_ids"]);
  EXPECT_EQ(second["usage"]["prompt_tokens"], 11);
  EXPECT_EQ(second["usage"]["prompt_tokens_details"]["cached_tokens"], 10);
  EXPECT_EQ(whole["token_ids"].size(), ids.size());
}

TEST_F(StateRoutesTest, AFileGoesOnAsItsHandleDoes) {
  const json state = NewState("inline");
  EXPECT_TRUE(state["handle"].is_null());
  EXPECT_TRUE(state["expires_at"].is_null());
  const json by_file = Complete({{"state", state["data"]}, {"prompt", "xy"}, {"max_tokens", 4}});
  const json by_handle =
      Complete({{"state", NewState()["handle"]}, {"prompt", "xy"}, {"max_tokens", 4}});
  EXPECT_EQ(by_file["choices"][0]["token_ids"], by_handle["choices"][0]["token_ids"]);
}

TEST_F(StateRoutesTest, AStreamEndsWithItsState) {
  const HttpAnswer answer =
      Post({{"prompt", "abc"}, {"max_tokens", 3}, {"return_state", "handle"}, {"stream", true}});
  const size_t last = answer.body.rfind("data: {");
  const json event =
      json::parse(answer.body.substr(last + 6, answer.body.find("\n\n", last) - last - 6));
  EXPECT_EQ(event["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(event["state"]["handle"].get<std::string>().size(), 32);
  EXPECT_EQ(answer.body.find("\"state\""), answer.body.rfind("\"state\""));
}

TEST_F(StateRoutesTest, FilesComeAndGo) {
  const std::string handle = NewState()["handle"];
  const HttpAnswer file = Ask("GET", "/v1/states/" + handle);
  EXPECT_EQ(file.status, 200);
  const std::string other = std::string(31, '0') + "1";
  const HttpAnswer put = Ask("PUT", "/v1/states/" + other, file.body);
  ASSERT_EQ(put.status, 200) << put.body;
  EXPECT_EQ(json::parse(put.body)["handle"], other);
  EXPECT_EQ(json::parse(put.body)["position"], 10);
  EXPECT_EQ(Ask("GET", "/v1/states/" + other).body, file.body);
  EXPECT_EQ(json::parse(Ask("GET", "/v1/states").body)["data"].size(), 2);
  EXPECT_EQ(Ask("DELETE", "/v1/states/" + other).status, 200);
  EXPECT_EQ(Ask("DELETE", "/v1/states/" + other).status, 404);
  EXPECT_EQ(Ask("GET", "/v1/states/" + other).status, 404);
  EXPECT_EQ(json::parse(Ask("GET", "/v1/states").body)["data"][0]["handle"], handle);
}

TEST_F(StateRoutesTest, AForkIsAsGoodAsWhatItIsOf) {
  const std::string handle = NewState()["handle"];
  const HttpAnswer answer = Ask("POST", "/v1/states/" + handle + "/fork", R"({"n": 3})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const json forks = json::parse(answer.body)["handles"];
  EXPECT_EQ(forks.size(), 3);
  EXPECT_EQ(Ask("DELETE", "/v1/states/" + handle).status, 200);
  for (const json& fork : forks) {
    EXPECT_EQ(Complete({{"state", fork}, {"max_tokens", 2}})["usage"]["prompt_tokens"], 11);
  }
  const std::string one = forks[0];
  EXPECT_EQ(json::parse(Ask("POST", "/v1/states/" + one + "/fork").body)["handles"].size(), 1);
  EXPECT_EQ(Ask("POST", "/v1/states/" + one + "/fork", R"({"n": 129})").status, 400);
  EXPECT_EQ(Ask("POST", "/v1/states/" + std::string(kUnknown) + "/fork").status, 404);
}

TEST_F(StateRoutesTest, WhatIsWrongIsRefused) {
  const json state = NewState("inline");
  std::string file;
  ASSERT_TRUE(absl::Base64Unescape(state["data"].get<std::string>(), &file));
  std::string damaged = file;
  damaged.back() = static_cast<char>(damaged.back() ^ 1);
  const std::string of_another = *SmallStateFile(3);
  const std::string path = "/v1/states/" + std::string(kUnknown);
  for (const auto& [body, status] :
       std::vector<std::pair<std::string, int>>{{damaged, 400},
                                                {of_another, 409},
                                                {"", 400},
                                                {"no file", 400},
                                                {file.substr(0, file.size() - 1), 400},
                                                {file, 200}}) {
    EXPECT_EQ(Ask("PUT", path, body).status, status) << body.size();
    if (body.empty()) continue;
    const json request = {{"state", absl::Base64Escape(body)}, {"max_tokens", 1}};
    EXPECT_EQ(Post(request).status, status) << body.size();
  }
  EXPECT_EQ(Ask("PUT", path + "?state_ttl=0", file).status, 400);
  EXPECT_EQ(Ask("PUT", path + "?ttl=5", file).status, 400);
  EXPECT_EQ(Ask("PUT", path + "?state_ttl=5", file).status, 200);
  EXPECT_EQ(Ask("PUT", "/v1/states/no-handle", file).status, 400);
  EXPECT_EQ(Ask("GET", "/v1/states/" + std::string(32, 'A')).status, 400);
}

TEST_F(StateRoutesTest, RequestsThatDoNotFitTheirStateAreRefused) {
  const std::string handle = NewState()["handle"];
  const json common = {{"state", handle}, {"max_tokens", 2}};
  for (const auto& [more, status] : std::vector<std::pair<json, int>>{
           {json::object(), 200},
           {{{"position", 10}}, 200},
           {{{"position", 9}}, 200},
           {{{"position", 11}}, 400},
           {{{"position", -1}}, 400},
           {{{"position", 0}}, 400},
           {{{"position", 0}, {"prompt", "a"}}, 200},
           {{{"return_state", "both"}}, 400},
           {{{"return_state", "handle"}, {"n", 2}}, 400},
           {{{"return_state", "handle"}, {"prompt", {"a", "b"}}}, 400},
           {{{"return_state", "handle"}, {"state_ttl", 100000000}}, 400},
           {{{"return_state", "handle"}, {"state_ttl", 60}}, 200},
           {{{"state_ttl", 60}}, 400},
           {{{"n", 2}}, 200},
           {{{"echo", true}, {"logprobs", 1}}, 400},
           {{{"state", kUnknown}}, 404},
           {{{"state", kUnknown}, {"stream", true}}, 404},
           {{{"state", "!"}}, 400},
           {{{"state", 5}}, 400}}) {
    json request = common;
    request.update(more);
    EXPECT_EQ(Post(request).status, status) << request;
  }
  EXPECT_EQ(Post({{"prompt", "a"}, {"position", 5}}).status, 400);
  EXPECT_EQ(Post({{"max_tokens", 2}}).status, 400);
}

// A context that was taken in by itself has no token to go on with.
TEST_F(StateRoutesTest, AContextIsTakenInOnce) {
  const json context = Complete({{"prompt", "abcdefgh"},
                                 {"max_tokens", 0},
                                 {"echo", true},
                                 {"return_state", "handle"}})["state"];
  EXPECT_EQ(context["position"], 8);
  const json request = {{"state", context["handle"]}, {"max_tokens", 2}};
  EXPECT_EQ(Post(request).status, 400);
  json more = request;
  more["prompt"] = "xy";
  const json usage = Complete(more)["usage"];
  EXPECT_EQ(usage["prompt_tokens"], 10);
  EXPECT_EQ(usage["prompt_tokens_details"]["cached_tokens"], 8);
}

}  // namespace
}  // namespace hippodrome::state_routes_test
