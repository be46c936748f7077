#include "server/routes/admin_routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "server/handlers/handlers.h"
#include "server/http/http_server.h"
#include "tests/testing/fake_model.h"
#include "tests/testing/http_client.h"
#include "tests/testing/wait_until.h"

namespace hippodrome::admin_routes_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr char kModels[] = "/v2/repository/models/";

class AdminRoutesTest : public testing::Test {
 protected:
  static ModelRepository::Functions Functions(Metrics& metrics) {
    return {
        .read = [](const ModelSource& source, const auto&) -> absl::StatusOr<ModelParts> {
          if (source.directory == "broken") return InvalidArgument("config.json: no object");
          return NewFakeModel(source.name);
        },
        .serve = [&metrics](ModelParts parts) { return NewServedModel(std::move(parts), metrics); },
        .report = [](const std::string&, bool) {}};
  }

  HttpAnswer Post(const std::string& path, const std::string& body) {
    return HttpClient(server_->address()).Post(path, body);
  }
  HttpAnswer Get(const std::string& path) { return HttpClient(server_->address()).Get(path); }
  json Index(const std::string& body = "") {
    return json::parse(Post("/v2/repository/index", body).body);
  }

  Metrics metrics_;
  const AccessControl access_{"", metrics_};
  Handlers handlers_{{}, RequestLimits()};
  ModelRepository repository_{handlers_.models(), metrics_, Functions(metrics_)};
  HttpOptions options_{.address = "127.0.0.1:0"};
  HttpRoutes routes_{handlers_, metrics_, access_, options_};
  AdminRoutes admin_{routes_, repository_, access_};
  const std::unique_ptr<HttpServer> server_ =
      HttpServer::Start(options_, [this](const HttpRequest& request) {
        return admin_.Handle(request);
      }).value();
};

TEST_F(AdminRoutesTest, AModelComesAndGoes) {
  EXPECT_EQ(Index(), json::array());
  EXPECT_EQ(Get("/ready").status, 503);
  EXPECT_EQ(Post(std::string(kModels) + "m/load", R"({"parameters": {"directory": "d"}})").status,
            200);
  EXPECT_EQ(Get("/ready").status, 200);
  EXPECT_EQ(Index("{\"ready\": true}"),
            json::parse(R"([{"name": "m", "version": "1", "state": "READY"}])"));
  EXPECT_EQ(Post(std::string(kModels) + "m/load", "").status, 200);  // again, from there
  EXPECT_EQ(
      Post(std::string(kModels) + "m/unload", R"({"parameters": {"unload_dependents": false}})")
          .status,
      200);
  EXPECT_EQ(Get("/ready").status, 503);
  EXPECT_TRUE(WaitUntil([this] { return Index()[0]["state"] == "UNAVAILABLE"; }));
  EXPECT_EQ(Index()[0]["reason"], "unloaded");
  EXPECT_EQ(Index("{\"ready\": true}"), json::array());
  EXPECT_EQ(Post(std::string(kModels) + "m/unload", "{}").status, 404);
}

TEST_F(AdminRoutesTest, ErrorsAreTritons) {
  const auto error = [&](const std::string& path, const std::string& body) {
    const HttpAnswer answer = Post(kModels + path, body);
    EXPECT_EQ(answer.status, 400) << path << " " << body;
    return json::parse(answer.body).at("error").get<std::string>();
  };
  EXPECT_THAT(error("m/load", R"({"parameters": {"directory": "broken"}})"),
              HasSubstr("config.json"));
  EXPECT_EQ(Index()[0]["reason"], "config.json: no object");
  EXPECT_THAT(error("new/load", ""), HasSubstr("directory"));
  EXPECT_THAT(error("m/load", R"({"parameters": {"config": "{}"}})"), HasSubstr("config"));
  EXPECT_THAT(error("m/load", R"({"parameters": {"directory": ""}})"), HasSubstr("directory"));
  EXPECT_THAT(error("m/load", R"({"parameters": {"directory": 1}})"), HasSubstr("directory"));
  EXPECT_THAT(error("m/load", R"({"parameters": {"directory": "a\n"}})"), HasSubstr("directory"));
  EXPECT_THAT(error("m/load", R"({"directory": "d"})"), HasSubstr("directory"));
  EXPECT_THAT(error("m/load", R"({"parameters": {"directory": "d", "grace_seconds": -1}})"),
              HasSubstr("grace_seconds"));
  EXPECT_THAT(error("m/unload", R"({"parameters": {"directory": "d"}})"), HasSubstr("directory"));
  EXPECT_THAT(error("a%2Fb/load", R"({"parameters": {"directory": "d"}})"), HasSubstr("name"));
  EXPECT_THAT(error("a%0Ab/unload", ""), HasSubstr("name"));
}

TEST_F(AdminRoutesTest, NothingElseIsThere) {
  EXPECT_EQ(Get("/v1/models").status, 404);
  EXPECT_EQ(Get("/v2/repository/index").status, 405);
  EXPECT_EQ(Post("/v1/completions", R"({"prompt": "a"})").status, 404);
  for (const char* path : {"/health", "/metrics", "/version"}) EXPECT_EQ(Get(path).status, 200);
}

TEST_F(AdminRoutesTest, DescribesItself) {
  const json document = json::parse(Get("/openapi.json").body);
  EXPECT_EQ(document["paths"].size(), admin_.routes().size());
  const json& load = document["paths"]["/v2/repository/models/{model}/load"]["post"];
  EXPECT_EQ(load["parameters"][0]["name"], "model");
  EXPECT_TRUE(load["requestBody"]["content"]["application/json"]["schema"]["properties"].contains(
      "parameters"));
}

}  // namespace
}  // namespace hippodrome::admin_routes_test
