#include "server/http/http_router.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace hippodrome::http_router_test {
namespace {

using Parameters = std::map<std::string, std::string>;

HttpRouter NewRouter() {
  const auto handle = [](const HttpRequest&) { return HttpReply(); };
  return HttpRouter({{"/", "POST", handle},
                     {"/models", "GET", handle},
                     {"/models/{id}", "GET", handle},
                     {"/models/{id}", "POST", handle},
                     {"/models/{id}/versions/{version}", "GET", handle}});
}

HttpRequest Request(const std::string& method, const std::string& path) {
  HttpRequest request;
  request.method = method;
  request.path = path;
  return request;
}

std::string Allow(const HttpResponse& response) {
  for (const auto& [name, value] : response.headers) {
    if (name == "Allow") return value;
  }
  return "";
}

TEST(HttpRouterTest, SegmentsOfThePatternBecomeParameters) {
  struct Row {
    const char* path;
    const char* pattern;
    Parameters parameters;
  };
  const Row rows[] = {
      {"/models", "/models", {}},
      {"/m%6Fdels", "/models", {}},
      {"/models/a", "/models/{id}", {{"id", "a"}}},
      {"/models/a%2Fb%20c%c3%A9", "/models/{id}", {{"id", "a/b c\xc3\xa9"}}},
      {"/models/a+b", "/models/{id}", {{"id", "a+b"}}},
      {"/models/a/versions/1", "/models/{id}/versions/{version}", {{"id", "a"}, {"version", "1"}}},
  };
  const HttpRouter router = NewRouter();
  for (const Row& row : rows) {
    HttpRequest request = Request("GET", row.path);
    EXPECT_FALSE(router.Resolve(request)) << row.path;
    ASSERT_NE(request.route, nullptr) << row.path;
    EXPECT_STREQ(request.route->pattern, row.pattern);
    EXPECT_EQ(request.parameters, row.parameters) << row.path;
  }
}

TEST(HttpRouterTest, OtherPathsAreNotFound) {
  const HttpRouter router = NewRouter();
  for (const char* path : {"", "/model", "/models/", "//models", "/models//versions/1", "/./models",
                           "/models/a/versions", "/Models", "models", "/models/a/b", "*"}) {
    HttpRequest request = Request("GET", path);
    const auto response = router.Resolve(request);
    ASSERT_TRUE(response) << path;
    EXPECT_EQ(response->status, 404) << path;
    EXPECT_EQ(request.route, nullptr);
  }
}

TEST(HttpRouterTest, APathThatCannotBeDecodedIsRefused) {
  const HttpRouter router = NewRouter();
  for (const char* path : {"/models/%", "/models/%4", "/models/%zz", "/models/%4g", "/%-1"}) {
    HttpRequest request = Request("GET", path);
    const auto response = router.Resolve(request);
    ASSERT_TRUE(response) << path;
    EXPECT_EQ(response->status, 400) << path;
  }
}

TEST(HttpRouterTest, MethodsChooseAmongRoutesAndAreNamedInRefusals) {
  const HttpRouter router = NewRouter();
  HttpRequest post = Request("POST", "/models/a");
  EXPECT_FALSE(router.Resolve(post));
  EXPECT_STREQ(post.route->method, "POST");
  HttpRequest head = Request("HEAD", "/models");
  EXPECT_FALSE(router.Resolve(head));
  EXPECT_STREQ(head.route->pattern, "/models");

  struct Row {
    const char* method;
    const char* path;
    int status;
    const char* allow;
  };
  const Row rows[] = {
      {"GET", "/", 405, "POST, OPTIONS"},
      {"HEAD", "/", 405, "POST, OPTIONS"},
      {"DELETE", "/models/a", 405, "GET, POST, HEAD, OPTIONS"},
      {"get", "/models", 405, "GET, HEAD, OPTIONS"},
      {"OPTIONS", "/models", 204, "GET, HEAD, OPTIONS"},
      {"OPTIONS", "*", 204, "GET, HEAD, POST, OPTIONS"},
      {"OPTIONS", "/nothing", 404, ""},
  };
  for (const Row& row : rows) {
    HttpRequest request = Request(row.method, row.path);
    const auto response = router.Resolve(request);
    ASSERT_TRUE(response) << row.method << " " << row.path;
    EXPECT_EQ(response->status, row.status) << row.method << " " << row.path;
    EXPECT_EQ(Allow(*response), row.allow) << row.method << " " << row.path;
  }
}

}  // namespace
}  // namespace hippodrome::http_router_test
