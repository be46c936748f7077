// API keys over HTTP, as far as it takes no model; tests/e2e/access/keys_test.py has the whole
// program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "server/access/key_secret.h"
#include "tests/testing/fake_model.h"
#include "tests/testing/http_client.h"
#include "tests/testing/routes_server.h"
#include "tests/testing/temporary_directory.h"
#include "tests/testing/wait_until.h"

namespace hippodrome::access_routes_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

json Key(const std::string& name) {
  return {{"name", name}, {"secrets", {{{"sha256", ToHex(DigestOf("hk-" + name))}}}}};
}

class AccessRoutesTest : public testing::Test {
 protected:
  AccessRoutesTest() {
    json root = Key("root");
    root["admin"] = true;
    json limited = Key("limited");
    limited["limits"] = {{"calls", 1}, {"tokens", 100}};
    json slow = Key("slow");
    slow["limits"] = {{"requests_per_minute", 1}, {"burst", 1}};
    json other = Key("other");
    other["models"] = {"another"};
    keys_ = {{"keys", {Key("user"), root, limited, slow, other}}};
    WriteKeys();
    std::vector<std::unique_ptr<ServedModel>> models;
    models.push_back(NewServedModel(NewFakeModel("m", {}, &engine_), metrics_));
    server_ = std::make_unique<RoutesServer>(std::move(models), metrics_, path_);
  }

  void WriteKeys() {
    directory_.Write("keys.json", keys_.dump());
    ASSERT_EQ(chmod(path_.c_str(), 0600), 0);
  }
  static std::string Head(const std::string& method, const std::string& target,
                          const std::string& key) {
    std::string head = method + " " + target + " HTTP/1.1\r\nHost: h\r\n";
    if (!key.empty()) head += "Authorization: Bearer hk-" + key + "\r\n";
    return head;
  }
  HttpAnswer Ask(const std::string& method, const std::string& target, const std::string& key,
                 const std::string& body = "") {
    HttpClient client(server_->address());
    client.Send(Head(method, target, key) + "Content-Length: " + std::to_string(body.size()) +
                "\r\n\r\n" + body);
    return client.Read();
  }
  std::string Running(const std::string& key) {
    const std::string name = "hippodrome_key_calls_running{key=\"" + key + "\"} ";
    const std::string text = metrics_.Text();
    const size_t at = text.find(name) + name.size();
    return text.substr(at, text.find('\n', at) - at);
  }

  const TemporaryDirectory directory_;
  const std::string path_ = directory_.File("keys.json");
  json keys_;
  Metrics metrics_;
  FakeEngine* engine_ = nullptr;
  std::unique_ptr<RoutesServer> server_;
};

TEST_F(AccessRoutesTest, EveryRouteNeedsAKeyUnlessItSaysOtherwise) {
  std::vector<std::string> open;
  for (const HttpRoute& route : server_->routes().routes()) {
    if (route.access == Access::kOpen) {
      open.emplace_back(route.pattern);
      continue;
    }
    std::string path = route.pattern;
    for (size_t at = path.find('{'); at != std::string::npos; at = path.find('{')) {
      path.replace(at, path.find('}') + 1 - at, "m");
    }
    for (const char* key : {"", "wrong"}) {
      const HttpAnswer answer = Ask(route.method, path, key, "{}");
      EXPECT_EQ(answer.status, 401) << route.pattern;
      EXPECT_EQ(answer.headers.at("www-authenticate"), "Bearer") << route.pattern;
      EXPECT_TRUE(json::parse(answer.body).contains("error")) << route.pattern;
    }
    EXPECT_NE(Ask(route.method, path, "user", "{}").status, 401) << route.pattern;
  }
  EXPECT_THAT(open, testing::IsSubsetOf({"/health", "/ready", "/"}));
}

TEST_F(AccessRoutesTest, WhereThereIsNoRouteAKeyIsNeededToLearnThat) {
  for (const char* target :
       {"/nothing", "//health", "/health/", "/./health", "/x/../health", "/HEALTH", "/health.",
        "/health%2f", "/%2fhealth", "/health%00", "/v1%2fmodels", "/%zz", "/v1/models/"}) {
    EXPECT_EQ(Ask("GET", target, "").status, 401) << target;
    EXPECT_THAT(Ask("GET", target, "user").status, testing::AnyOf(400, 404)) << target;
  }
  EXPECT_EQ(Ask("DELETE", "/health", "").status, 401);
  EXPECT_EQ(Ask("DELETE", "/health", "user").status, 405);
  EXPECT_EQ(Ask("GET", "/he%61lth", "").status, 200);
}

TEST_F(AccessRoutesTest, TheBodyOfWhoHasNoKeyIsNotWaitedFor) {
  for (const char* body : {"Content-Length: 8000000\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n",
                           "Content-Length: 5\r\nExpect: 100-continue\r\n\r\n"}) {
    HttpClient client(server_->address());
    client.Send(Head("POST", "/v1/completions", "wrong") + body);
    const HttpAnswer answer = client.Read();
    EXPECT_EQ(answer.status, 401) << body;
    EXPECT_EQ(answer.headers.at("connection"), "close") << body;
  }
}

TEST_F(AccessRoutesTest, ASmallBodyIsReadSoThatTheConnectionGoesOn) {
  HttpClient client(server_->address());
  for (const char* key : {"wrong", "user", "", "user"}) {
    const bool right = std::string(key) == "user";
    client.Send(Head("POST", "/v1/completions", key) + "Content-Length: 2\r\n\r\n{}");
    const HttpAnswer answer = client.Read();
    EXPECT_EQ(answer.status, right ? 400 : 401);
    EXPECT_EQ(answer.headers.at("connection"), "keep-alive");
  }
}

TEST_F(AccessRoutesTest, EachRequestOfAConnectionIsLookedAtByItself) {
  HttpClient client(server_->address());
  client.Send(Head("GET", "/v1/models", "user") + "\r\n" + Head("GET", "/v1/models", "") + "\r\n" +
              Head("GET", "/v1/models", "wrong") + "\r\n" + Head("GET", "/v1/models", "user") +
              "\r\n");
  for (const int status : {200, 401, 401, 200}) EXPECT_EQ(client.Read().status, status);
}

TEST_F(AccessRoutesTest, SeveralAuthorizationFieldsAreRefused) {
  HttpClient client(server_->address());
  client.Send(Head("GET", "/v1/models", "user") + "Authorization: Bearer hk-user\r\n\r\n");
  const HttpAnswer answer = client.Read();
  EXPECT_EQ(answer.status, 401);
  EXPECT_THAT(answer.body, HasSubstr("one field"));
}

TEST_F(AccessRoutesTest, LimitsAnswer429WithTheTime) {
  EXPECT_EQ(Ask("GET", "/v1/models", "slow").status, 200);
  const HttpAnswer answer = Ask("GET", "/v1/models", "slow");
  EXPECT_EQ(answer.status, 429);
  EXPECT_EQ(answer.headers.at("retry-after"), "60");
  EXPECT_THAT(metrics_.Text(), HasSubstr("hippodrome_request_failures_total{reason=\"limit\"} 1"));
  EXPECT_EQ(Ask("GET", "/health", "slow").status, 200);
}

TEST_F(AccessRoutesTest, ACallIsOverWhenItsClientHasTheAnswer) {
  // Of the only call that it may have at once.
  for (int i = 0; i < 200; ++i) {
    const std::string body =
        json{{"prompt", "abc"}, {"max_tokens", 3}, {"stream", i % 2 == 1}}.dump();
    ASSERT_EQ(Ask("POST", "/v1/completions", "limited", body).status, 200) << i;
  }
}

TEST_F(AccessRoutesTest, ACallThatIsGivenUpIsOver) {
  engine_->hold_decode = true;
  HttpClient first(server_->address());
  const std::string body = R"({"prompt": "abc", "max_tokens": 50, "stream": true})";
  first.Send(Head("POST", "/v1/completions", "limited") +
             "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  ASSERT_TRUE(WaitUntil([&] { return Running("limited") == "1"; }));
  EXPECT_EQ(Ask("GET", "/v1/models", "limited").status, 429);
  first.Reset();
  EXPECT_TRUE(WaitUntil([&] { return Running("limited") == "0"; }));
  engine_->hold_decode = false;
  EXPECT_EQ(Ask("GET", "/v1/models", "limited").status, 200);
}

TEST_F(AccessRoutesTest, WhatACallReservesIsLimited) {
  const auto ask = [&](int64_t tokens, int64_t choices) {
    const json body = {
        {"prompt", "abc"}, {"max_tokens", tokens}, {"n", choices}, {"temperature", 1}};
    return Ask("POST", "/v1/completions", "limited", body.dump());
  };
  EXPECT_EQ(ask(22, 4).status, 200);
  const HttpAnswer answer = ask(23, 4);
  EXPECT_EQ(answer.status, 400);
  EXPECT_THAT(answer.body, HasSubstr("reserves 104 tokens, and its key may reserve 100"));
  EXPECT_TRUE(WaitUntil([&] { return Running("limited") == "0"; }));
}

TEST_F(AccessRoutesTest, AKeyRunsTheModelsThatItMay) {
  const std::string body = R"({"prompt": "abc", "max_tokens": 3})";
  const HttpAnswer answer = Ask("POST", "/v1/completions", "other", body);
  EXPECT_EQ(answer.status, 403);
  EXPECT_THAT(answer.body, HasSubstr("may not run the model 'm'"));
  EXPECT_EQ(Ask("GET", "/v1/models", "other").status, 200);
}

TEST_F(AccessRoutesTest, AKeyThatIsGoneBeginsNoMoreCalls) {
  EXPECT_EQ(Ask("GET", "/v1/models", "user").status, 200);
  keys_["keys"].erase(0);
  WriteKeys();
  ASSERT_TRUE(server_->access().Reload().ok());
  EXPECT_EQ(Ask("GET", "/v1/models", "user").status, 401);
  EXPECT_EQ(Ask("GET", "/v1/models", "root").status, 200);
}

}  // namespace
}  // namespace hippodrome::access_routes_test
