#include "server/routes/openapi.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
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
    routes_ = std::make_unique<HttpRoutes>(*handlers_, metrics_, access_, HttpOptions());
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
  const AccessControl access_{"", metrics_};
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
    if (!fields || route.method != std::string("POST")) continue;  // GET / is a page
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

TEST_F(OpenApiTest, RootIsAPageForBrowsersAndARouteForClients) {
  const json root = Document()["paths"]["/"];
  EXPECT_TRUE(root["get"]["responses"]["200"]["content"].contains("text/html"));
  EXPECT_FALSE(root["get"].contains("requestBody"));
  EXPECT_TRUE(root["post"].contains("requestBody"));
}

TEST_F(OpenApiTest, TheReadmeHasEveryPath) {
  std::ifstream file("README.md");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  EXPECT_THAT(text, HasSubstr("`/v2/...`"));
  for (const HttpRoute& route : routes_->routes()) {
    const std::string path = route.pattern;
    if (path.starts_with("/v2")) continue;
    EXPECT_TRUE(text.find(path + "`") != std::string::npos) << path;
  }
}

TEST_F(OpenApiTest, EveryBodyIsDescribed) {
  const json document = Document();
  for (const HttpRoute& route : routes_->routes()) {
    if (std::string(route.method) != "POST") continue;
    const std::string path = route.pattern;
    const char* type = path == "/v1/files" ? "multipart/form-data" : "application/json";
    const json& operation = document["paths"][path]["post"];
    if (path.ends_with("/cancel")) {
      EXPECT_FALSE(operation.contains("requestBody")) << path;
      continue;
    }
    const json& schema = operation["requestBody"]["content"][type]["schema"];
    const bool chats = std::string(route.pattern) == "/v1/chat/completions";  // always refused
    EXPECT_TRUE(chats || schema.contains("properties") || schema.contains("oneOf"))
        << route.pattern;
  }
}

// What the document says of numbers is what routes do: the bounds are in the range, and what is
// beyond them is refused by name.
TEST_F(OpenApiTest, RangesAreThoseThatAreChecked) {
  const json document = Document();
  const auto properties = [&](const char* path) {
    return document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
                   ["properties"];
  };
  struct Body {
    const char* path;
    json fields;
    json body;        // that is taken
    bool parameters;  // where the fields stand
  };
  const Body bodies[] = {
      {"/v1/completions", properties("/v1/completions"), {{"prompt", "a"}}, false},
      {"/generate",
       document["components"]["schemas"]["TgiParameters"]["properties"],
       {{"inputs", "a"}, {"parameters", {{"do_sample", true}}}},
       true},
      {"/v2/models/{model}/generate",
       properties("/v2/models/{model}/generate"),
       {{"text_input", "a"}},
       false},
  };
  int checked = 0;
  for (const Body& row : bodies) {
    const HttpRoute* route = nullptr;
    for (const HttpRoute& other : routes_->routes()) {
      if (std::string(other.pattern) == row.path) route = &other;
    }
    ASSERT_NE(route, nullptr);
    for (const auto& [name, schema] : row.fields.items()) {
      if (!schema.contains("maximum") || name == "seed") continue;
      ++checked;
      const auto refusal = [&, &name = name](const json& value) {
        json body = row.body;
        (row.parameters ? body["parameters"] : body)[name] = value;
        return Refusal(*route, body);
      };
      const bool open = schema.contains("exclusiveMinimum");
      const double least = schema[open ? "exclusiveMinimum" : "minimum"];
      const double most = schema["maximum"];
      const json above =
          schema["type"] == "integer" ? json(static_cast<int64_t>(most) + 1) : json(most * 1.001);
      const json below = open                          ? json(least)
                         : schema["type"] == "integer" ? json(static_cast<int64_t>(least) - 1)
                                                       : json(least - 0.001);
      EXPECT_THAT(refusal(above), HasSubstr(name + ":")) << row.path;
      EXPECT_THAT(refusal(below), HasSubstr(name + ":")) << row.path;
    }
  }
  EXPECT_EQ(checked, 12 + 10 + 9);
}

TEST_F(OpenApiTest, CountsAreThoseOfTheLimits) {
  const RequestLimits limits;
  const json document = Document();
  const auto field = [&](const char* path, const char* name) {
    return document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
                   ["properties"][name];
  };
  const json stop = field("/v1/completions", "stop");
  EXPECT_EQ(stop["oneOf"][1]["maxItems"], limits.max_stops);
  const std::string bytes = std::to_string(limits.max_stop_bytes) + " bytes";
  EXPECT_THAT(stop["description"].get<std::string>(), HasSubstr(bytes));
  const json& tgi = document["components"]["schemas"]["TgiParameters"]["properties"]["stop"];
  EXPECT_EQ(tgi["maxItems"], limits.max_stops);
  EXPECT_THAT(tgi["description"].get<std::string>(), HasSubstr(bytes));
  const json bias = field("/v1/completions", "logit_bias");
  EXPECT_EQ(bias["maxProperties"], limits.max_logit_bias);
  EXPECT_EQ(bias["additionalProperties"]["minimum"], kLogitBiasRange.least);
  EXPECT_EQ(bias["additionalProperties"]["maximum"], kLogitBiasRange.most);
  EXPECT_EQ(field("/question_answering", "top_k")["maximum"], limits.max_answers);
}

TEST_F(OpenApiTest, FieldsThatEveryBodyMayHaveAreListedAsIgnored) {
  const json fields = Document()["paths"]["/predict"]["post"]["requestBody"]["content"]
                                ["application/json"]["schema"]["properties"];
  EXPECT_EQ(fields["user"]["description"], "ignored");
}

TEST_F(OpenApiTest, SaysWhichRoutesTakeAKey) {
  const json document = json::parse(OpenApiBody(routes_->routes()));
  EXPECT_EQ(document["components"]["securitySchemes"]["apiKey"]["scheme"], "bearer");
  EXPECT_EQ(document["security"], json::parse(R"([{"apiKey": []}, {}])"));
  EXPECT_EQ(document["paths"]["/health"]["get"]["security"], json::array());
  const json completions = document["paths"]["/v1/completions"]["post"];
  EXPECT_FALSE(completions.contains("security"));
  for (const char* status : {"401", "403", "429"}) {
    EXPECT_TRUE(completions["responses"].contains(status)) << status;
  }
}

}  // namespace
}  // namespace hippodrome::openapi_test
