#include "server/http/cors.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace hippodrome::cors_test {
namespace {

using Headers = std::map<std::string, std::string>;

Headers HeadersOf(const HttpResponse& response) {
  return {response.headers.begin(), response.headers.end()};
}

HttpRequest From(const std::string& origin, const std::string& method = "POST") {
  HttpRequest request;
  request.method = method;
  if (!origin.empty()) request.headers["origin"] = origin;
  return request;
}

HttpRequest Preflight(const std::string& origin, const std::string& names) {
  HttpRequest request = From(origin, "OPTIONS");
  request.headers["access-control-request-method"] = "POST";
  request.headers["access-control-request-headers"] = names;
  return request;
}

HttpReply AllowReply() {
  HttpReply reply;
  reply.response.status = 204;
  reply.response.headers.emplace_back("Allow", "POST, OPTIONS");
  return reply;
}

// Replaces its whole response, as failures do.
class ReplacingWork : public HttpWork {
 public:
  void OnUpdate(std::function<void()>) override {}
  bool Advance(HttpResponse& response) override {
    response = HttpResponse();
    response.status = 500;
    return true;
  }
};

TEST(CorsTest, NothingIsAddedByDefault) {
  const Cors cors({});
  const HttpReply reply = cors.Allow(Preflight("http://a", "x"), AllowReply());
  EXPECT_EQ(HeadersOf(reply.response), Headers({{"Allow", "POST, OPTIONS"}}));
}

TEST(CorsTest, OnlyListedOriginsMayRead) {
  const Cors cors({"http://a", "https://b:8443"});
  for (const char* origin : {"http://a", "https://b:8443"}) {
    const Headers headers = HeadersOf(cors.Allow(From(origin), HttpReply()).response);
    EXPECT_EQ(headers.at("Access-Control-Allow-Origin"), origin);
    EXPECT_EQ(headers.at("Vary"), "Origin");
  }
  for (const char* origin :
       {"", "http://c", "http://a:80", "https://a", "null", "*", "http://a/"}) {
    const Headers headers = HeadersOf(cors.Allow(From(origin), HttpReply()).response);
    EXPECT_EQ(headers, Headers({{"Vary", "Origin"}})) << origin;
  }
}

TEST(CorsTest, AStarAllowsAll) {
  const Cors cors({"*"});
  const Headers headers = HeadersOf(cors.Allow(From("http://any"), HttpReply()).response);
  EXPECT_EQ(headers.at("Access-Control-Allow-Origin"), "*");
  EXPECT_EQ(headers.count("Vary"), 0u);
  EXPECT_TRUE(HeadersOf(cors.Allow(From(""), HttpReply()).response).empty());
}

TEST(CorsTest, APreflightNamesMethodsAndTheRequestedHeaders) {
  const Cors cors({"http://a"});
  const Headers headers = HeadersOf(
      cors.Allow(Preflight("http://a", "authorization, content-type"), AllowReply()).response);
  EXPECT_EQ(headers.at("Access-Control-Allow-Origin"), "http://a");
  EXPECT_EQ(headers.at("Access-Control-Allow-Methods"), "POST, OPTIONS");
  EXPECT_EQ(headers.at("Access-Control-Allow-Headers"), "authorization, content-type");
  EXPECT_EQ(headers.at("Access-Control-Max-Age"), "600");
  // Other origins learn nothing, and what are no names does not come back.
  EXPECT_EQ(HeadersOf(cors.Allow(Preflight("http://c", "x"), AllowReply()).response),
            Headers({{"Allow", "POST, OPTIONS"}, {"Vary", "Origin"}}));
  for (const std::string& names : {std::string("a<b>"), std::string(1025, 'a')}) {
    const HttpReply reply = cors.Allow(Preflight("http://a", names), AllowReply());
    EXPECT_EQ(HeadersOf(reply.response).count("Access-Control-Allow-Headers"), 0u);
  }
}

TEST(CorsTest, AResponseThatWorkReplacesHasTheHeaders) {
  const Cors cors({"http://a"});
  HttpReply reply;
  reply.work = std::make_unique<ReplacingWork>();
  reply = cors.Allow(From("http://a"), std::move(reply));
  ASSERT_TRUE(reply.work->Advance(reply.response));
  EXPECT_EQ(reply.response.status, 500);
  EXPECT_EQ(HeadersOf(reply.response).at("Access-Control-Allow-Origin"), "http://a");
}

TEST(CorsTest, AStreamHasTheHeadersInItsHead) {
  const Cors cors({"http://a"});
  HttpReply reply;
  reply.work = std::make_unique<ReplacingWork>();
  reply.streamed = true;
  reply = cors.Allow(From("http://a"), std::move(reply));
  EXPECT_EQ(HeadersOf(reply.response).at("Access-Control-Allow-Origin"), "http://a");
}

}  // namespace
}  // namespace hippodrome::cors_test
