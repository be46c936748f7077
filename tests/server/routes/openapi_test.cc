#include "server/routes/openapi.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "server/routes/http_routes.h"
#include "tests/testing/fake_model.h"

namespace hippodrome::openapi_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

class OpenApiTest : public testing::Test {
 protected:
  OpenApiTest() {
    std::vector<std::unique_ptr<ServedModel>> models;
    models.push_back(NewServedModel(NewFakeModel("m"), metrics_));
    handlers_ = std::make_unique<Handlers>(std::move(models), RequestLimits());
    routes_ = std::make_unique<HttpRoutes>(*handlers_, metrics_, HttpOptions());
  }

  // The body of the answer to a call that is refused.
  std::string Refusal(const HttpRoute& route, const json& body) {
    HttpRequest request;
    request.method = route.method;
    request.path = route.pattern;
    for (const char* name : {"{model}", "{version}"}) {
      const size_t at = request.path.find(name);
      if (at == std::string::npos) continue;
      request.path.replace(at, std::string(name).size(), name[1] == 'm' ? "m" : "1");
    }
    request.body = body.dump();
    const HttpReply reply = routes_->Handle(request);
    EXPECT_EQ(reply.work, nullptr) << request.path << " " << body;
    EXPECT_EQ(reply.response.status, 400) << request.path << " " << body;
    return reply.response.body;
  }

  json Document() {
    HttpRequest request;
    request.method = "GET";
    request.path = "/openapi.json";
    return json::parse(routes_->Handle(request).response.body);
  }

  Metrics metrics_;
  std::unique_ptr<Handlers> handlers_;
  std::unique_ptr<HttpRoutes> routes_;
};

TEST_F(OpenApiTest, EveryRouteIsThere) {
  const json document = Document();
  EXPECT_EQ(document["openapi"], "3.1.0");
  size_t operations = 0;
  for (const auto& [path, methods] : document["paths"].items()) operations += methods.size();
  EXPECT_EQ(operations, routes_->routes().size());
  for (const HttpRoute& route : routes_->routes()) {
    EXPECT_TRUE(document["paths"][route.pattern].contains(absl::AsciiStrToLower(route.method)))
        << route.pattern;
  }
}

TEST_F(OpenApiTest, WhatIsReferredToIsThere) {
  const json document = Document();
  const std::string text = document.dump();
  const std::string prefix = "#/components/schemas/";
  for (size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix, at + 1)) {
    const size_t begin = at + prefix.size();
    const std::string name = text.substr(begin, text.find('"', begin) - begin);
    EXPECT_TRUE(document["components"]["schemas"].contains(name)) << name;
  }
}

// A value that no field takes tells those that are read from those that are not there.
TEST_F(OpenApiTest, RoutesTakeTheFieldsThatAreWrittenAndNoOthers) {
  const json wrong = json::parse("[[[{}]]]");
  int bodies = 0;
  for (const HttpRoute& route : routes_->routes()) {
    const std::optional<RequestFields> fields = BodyFields(route.pattern);
    if (!fields) continue;
    ++bodies;
    const std::string unknown = Refusal(route, {{"zzz_no_such_field", wrong}});
    EXPECT_THAT(unknown, HasSubstr("zzz_no_such_field")) << route.pattern;
    for (const RequestField& field : *fields) {
      const std::string refusal =
          Refusal(route, {{field.name, wrong}, {"zzz_no_such_field", wrong}});
      EXPECT_THAT(refusal, Not(HasSubstr(std::string(field.name) + ": there is no such field")))
          << route.pattern;
    }
  }
  EXPECT_GE(bodies, 15);
}

}  // namespace
}  // namespace hippodrome::openapi_test
