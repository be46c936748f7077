#include "server/routes/batch_routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "server/access/access_control.h"
#include "server/batches/batch_runner.h"
#include "server/handlers/handlers.h"
#include "server/metrics/metrics.h"
#include "server/routes/http_routes.h"
#include "tests/testing/fake_model.h"
#include "tests/testing/temporary_directory.h"
#include "tests/testing/wait_until.h"

namespace hippodrome::batch_routes_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr char kForm[] =
    "--B\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n"
    "--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"\xff.jsonl\"\r\n\r\n";
constexpr char kFormEnd[] = "\r\n--B--\r\n";

// The routes without a network, over the fake engine.
class BatchRoutesTest : public testing::Test {
 protected:
  BatchRoutesTest() {
    std::vector<std::unique_ptr<ServedModel>> models;
    models.push_back(NewServedModel(NewFakeModel("m"), metrics_));
    handlers_ = std::make_unique<Handlers>(std::move(models), RequestLimits());
    routes_ = std::make_unique<HttpRoutes>(*handlers_, metrics_, access_, HttpOptions(), options_);
  }

  void Start() {
    store_ = *BatchStore::Open(options_, batch_metrics_);
    routes_->batches().SetStore(*store_);
    runner_ = std::make_unique<BatchRunner>(BatchRunner::Options{
        .store = *store_,
        .metrics = batch_metrics_,
        .answer = [this](HttpRequest request) { return routes_->PassOn(std::move(request)); },
        .admit = [this](const std::string& key) { return access_.AdmitJob(key); },
        .most_calls = 4,
        .most_line_bytes = 10000});
  }

  HttpResponse Ask(const std::string& method, const std::string& path, const std::string& body = "",
                   const std::string& type = "application/json") {
    HttpRequest request;
    request.method = method;
    const size_t query = path.find('?');
    request.path = path.substr(0, query);
    if (query != std::string::npos) request.query = path.substr(query + 1);
    request.headers["content-type"] = type;
    request.body = body;
    HttpReply reply = routes_->Handle(std::move(request));
    if (reply.later) reply = std::exchange(reply.later, nullptr)();
    if (reply.work == nullptr) return reply.response;
    reply.work->OnUpdate([] {});
    while (!reply.work->Advance(reply.response)) continue;
    return reply.response;
  }
  HttpResponse Upload(const std::string& form) {
    return Ask("POST", "/v1/files", form, "multipart/form-data; boundary=B");
  }
  std::string Add(const std::string& content) {
    return json::parse(Upload(kForm + content + kFormEnd).body)["id"];
  }
  json Get(const std::string& path) {
    const HttpResponse response = Ask("GET", path);
    EXPECT_EQ(response.status, 200) << path << " " << response.body;
    return json::parse(response.body);
  }

  TemporaryDirectory folder_;
  const BatchStoreOptions options_{.directory = folder_.File("batches"), .file_bytes = 1000000};
  Metrics metrics_;
  BatchMetrics batch_metrics_{metrics_.registry(), BatchStatusNames()};
  const AccessControl access_{"", metrics_};
  std::unique_ptr<Handlers> handlers_;
  std::unique_ptr<HttpRoutes> routes_;
  std::unique_ptr<BatchStore> store_;
  std::unique_ptr<BatchRunner> runner_;
};

TEST_F(BatchRoutesTest, ABatchOfCompletions) {
  Start();
  std::string input;
  for (const char* id : {"a", "b"}) {
    input += json{{"custom_id", id},
                  {"method", "POST"},
                  {"url", "/v1/completions"},
                  {"body", {{"prompt", "abc"}, {"max_tokens", 3}}}}
                 .dump() +
             "\n";
  }
  const std::string file = Add(input);
  const json request = {
      {"input_file_id", file}, {"endpoint", "/v1/completions"}, {"completion_window", "24h"}};
  const json batch = json::parse(Ask("POST", "/v1/batches", request.dump()).body);
  const std::string path = "/v1/batches/" + batch["id"].get<std::string>();
  ASSERT_TRUE(WaitUntil([&] { return Get(path)["status"] == "completed"; }));
  const std::string output =
      Ask("GET", "/v1/files/" + Get(path)["output_file_id"].get<std::string>() + "/content").body;
  const json first = json::parse(output.substr(0, output.find('\n')));
  const json body = first["response"]["body"];
  EXPECT_EQ(body["id"], "cmpl-" + first["response"]["request_id"].get<std::string>());
  EXPECT_EQ(body["created"], batch["created_at"]);
  EXPECT_FALSE(body["usage"].contains("prompt_tokens_details"));
  EXPECT_EQ(Get(path)["usage"]["output_tokens"], 6);
}

// The exception breaks the connection: an answer that ends well would look whole.
TEST_F(BatchRoutesTest, ContentThatCannotBeReadDoesNotEndWell) {
  Start();
  const std::string id = Add("{}\n");
  const std::string path = folder_.File("batches") + "/files/" + id;
  ASSERT_TRUE(std::filesystem::remove(path));
  ASSERT_TRUE(std::filesystem::create_directory(path));
  EXPECT_THROW(Ask("GET", "/v1/files/" + id + "/content"), std::runtime_error);
}

TEST_F(BatchRoutesTest, ContentComesWholeHoweverLarge) {
  Start();
  const std::string content(700000, 'x');
  const std::string file = "/v1/files/" + Add(content);
  EXPECT_EQ(Ask("GET", file + "/content").body, content);
  EXPECT_EQ(Ask("HEAD", file + "/content").body, "");
  EXPECT_EQ(Get(file)["filename"], "\xef\xbf\xbd.jsonl");
  EXPECT_EQ(Ask("DELETE", file).status, 200);
  EXPECT_EQ(Ask("GET", file + "/content").status, 404);
  EXPECT_EQ(Ask("DELETE", file).status, 404);
}

TEST_F(BatchRoutesTest, FormsThatAreNoUploadAreRefused) {
  Start();
  const std::string purpose =
      "--B\r\nContent-Disposition: form-data; name=purpose\r\n\r\nbatch\r\n";
  const std::string file = "--B\r\nContent-Disposition: form-data; name=file; filename=x\r\n\r\n";
  EXPECT_THAT(Upload(purpose + "--B--").body, HasSubstr("file: it is missing"));
  EXPECT_THAT(Upload(file + "x" + kFormEnd).body, HasSubstr("purpose: it is missing"));
  EXPECT_THAT(Upload(purpose + purpose + file + "x" + kFormEnd).body, HasSubstr("twice"));
  EXPECT_THAT(
      Upload("--B\r\nContent-Disposition: form-data; name=\"expires_after[anchor]\"\r\n\r\n" +
             std::string(kFormEnd))
          .body,
      HasSubstr("no such field"));
  EXPECT_THAT(Upload(purpose + "--B\r\nContent-Disposition: form-data; name=file\r\n\r\nx" +
                     std::string(kFormEnd))
                  .body,
              HasSubstr("no filename"));
  EXPECT_EQ(Upload(purpose + file + std::string(1000001, 'x') + kFormEnd).status, 413);
  EXPECT_EQ(Ask("POST", "/v1/files", "{}").status, 400);
}

TEST_F(BatchRoutesTest, ListsTakeTheirParametersAlone) {
  Start();
  for (const char* query : {"limit=0", "limit=10001", "limit=x", "order=up", "after=file-1", "x=1",
                            "limit=1&limit=1", "after=%"}) {
    EXPECT_EQ(Ask("GET", std::string("/v1/files?") + query).status, 400) << query;
  }
  const json none = Get("/v1/files?limit=5&order=asc&purpose=batch");
  EXPECT_TRUE(none["data"].empty());
  EXPECT_TRUE(none["first_id"].is_null());
  EXPECT_EQ(none["has_more"], false);
  const std::string first = Add("1");
  const std::string second = Add("2");
  const json page = Get("/v1/files?limit=1");
  EXPECT_EQ(page["last_id"], second);
  EXPECT_EQ(page["has_more"], true);
  EXPECT_EQ(Get("/v1/files?after=" + second)["first_id"], first);
}

TEST_F(BatchRoutesTest, WithoutADirectoryAllIsRefused) {
  const json request = {
      {"input_file_id", "f"}, {"endpoint", "/predict"}, {"completion_window", "24h"}};
  for (const HttpResponse& response :
       {Upload(std::string(kForm) + kFormEnd), Ask("GET", "/v1/files"), Ask("GET", "/v1/files/f"),
        Ask("GET", "/v1/files/f/content"), Ask("DELETE", "/v1/files/f"), Ask("GET", "/v1/batches"),
        Ask("POST", "/v1/batches", request.dump()), Ask("GET", "/v1/batches/b"),
        Ask("POST", "/v1/batches/b/cancel")}) {
    EXPECT_EQ(response.status, 400);
    EXPECT_THAT(response.body, HasSubstr("--batch-dir"));
  }
}

}  // namespace
}  // namespace hippodrome::batch_routes_test
