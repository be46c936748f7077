#include "server/server.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "engine/base/status.h"
#include "hippodrome/v1/generation.grpc.pb.h"
#include "tests/testing/fake_model.h"
#include "tests/testing/http_client.h"
#include "tests/testing/wait_until.h"

namespace hippodrome::server_test {
namespace {

class ServerTest : public testing::Test {
 protected:
  ServerTest() {
    options_.http.address = "127.0.0.1:0";
    options_.grpc.address = "127.0.0.1:0";
    options_.admin_address = "127.0.0.1:0";
    options_.http.max_connections = 4;
    std::vector<ModelParts> models;
    models.push_back(NewFakeModel("m", {}, &engine_));
    server_ = Server::Start(options_, std::move(models)).value();
    channel_ = grpc::CreateChannel(server_->grpc_address(), grpc::InsecureChannelCredentials());
  }

  // Starts an SSE stream that has its first token.
  std::unique_ptr<HttpClient> OpenStream() {
    auto client = std::make_unique<HttpClient>(server_->http_address());
    client->SendRequest("POST", "/v1/completions",
                        R"({"prompt": "abc", "max_tokens": 4, "stream": true})");
    EXPECT_TRUE(WaitUntil([&] { return engine_->used_slots == 1; }));
    return client;
  }

  HttpAnswer Admin(const std::string& path) {
    return HttpClient(server_->admin_address()).Get(path);
  }

  // Of the whole server, as grpc.health.v1.Health/Check says it: field 1 of the answer; 1 =
  // SERVING.
  int Health() {
    grpc::GenericStub stub(channel_);
    grpc::ClientContext context;
    grpc::CompletionQueue queue;
    const grpc::ByteBuffer empty(nullptr, 0);
    const auto call =
        stub.PrepareUnaryCall(&context, "/grpc.health.v1.Health/Check", empty, &queue);
    call->StartCall();
    grpc::ByteBuffer answer;
    grpc::Status status;
    call->Finish(&answer, &status, this);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    std::vector<grpc::Slice> slices;
    answer.Dump(&slices);
    std::string bytes;
    for (const grpc::Slice& slice : slices) {
      bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
    }
    return status.ok() && bytes.size() == 2 && bytes[0] == 8 ? bytes[1] : -1;
  }

  ServerOptions options_;
  FakeEngine* engine_ = nullptr;
  std::unique_ptr<Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

TEST_F(ServerTest, BothTransportsGiveTheSameText) {
  const HttpAnswer http = HttpClient(server_->http_address())
                              .Post("/v1/completions", R"({"prompt": "abc", "max_tokens": 5})");
  EXPECT_NE(http.body.find("\"text\":\"abcab\""), std::string::npos);
  const auto stub = v1::Generation::NewStub(channel_);
  grpc::ClientContext context;
  v1::GenerateRequest request;
  request.set_text("abc");
  request.set_max_tokens(5);
  const auto reader = stub->Generate(&context, request);
  std::string text;
  for (v1::GenerateResponse response; reader->Read(&response);) text += response.text();
  EXPECT_EQ(text, "abcab");
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_EQ(Health(), 1);
}

TEST_F(ServerTest, DrainLetsStreamsFinishAndRefusesNewOnes) {
  EXPECT_EQ(Health(), 1);  // on a connection from before, for new ones are refused
  engine_->hold_decode = true;
  const auto stream = OpenStream();
  std::thread drain([&] { server_->Drain(std::chrono::seconds(0), std::chrono::minutes(1)); });
  EXPECT_TRUE(
      WaitUntil([&] { return HttpClient(server_->http_address()).Get("/ready").status == 503; }));
  EXPECT_TRUE(WaitUntil([&] { return Health() == 2; }));
  EXPECT_EQ(
      HttpClient(server_->http_address()).Post("/v1/completions", R"({"prompt": "x"})").status,
      503);
  engine_->hold_decode = false;
  const HttpAnswer answer = stream->Read();
  drain.join();
  EXPECT_NE(answer.body.find("\"finish_reason\":\"length\""), std::string::npos);
  EXPECT_TRUE(answer.body.ends_with("data: [DONE]\n\n"));
}

TEST_F(ServerTest, DuringTheDrainDelayRequestsAreTaken) {
  std::thread drain([&] { server_->Drain(std::chrono::hours(1), std::chrono::minutes(1)); });
  EXPECT_TRUE(WaitUntil([&] { return Admin("/ready").status == 503; }));
  EXPECT_EQ(HttpClient(server_->http_address()).Get("/ready").status, 503);
  EXPECT_TRUE(WaitUntil([&] { return Health() == 2; }));
  const HttpAnswer answer = HttpClient(server_->http_address())
                                .Post("/v1/completions", R"({"prompt": "abc", "max_tokens": 5})");
  EXPECT_EQ(answer.status, 200);
  server_->EndGracePeriod();
  drain.join();
  EXPECT_EQ(HttpClient(server_->http_address()).Get("/health").status, 0);
}

TEST_F(ServerTest, StreamsThatOutlastTheGraceEndInAnErrorAndAreCounted) {
  engine_->hold_decode = true;
  const auto stream = OpenStream();
  int64_t cut = 0;
  std::thread drain(
      [&] { cut = server_->Drain(std::chrono::seconds(0), std::chrono::milliseconds(20)); });
  const HttpAnswer answer = stream->Read();
  drain.join();
  EXPECT_EQ(answer.status, 200);
  EXPECT_NE(answer.body.find("\"code\":\"unavailable\""), std::string::npos);
  EXPECT_EQ(cut, 1);
}

TEST_F(ServerTest, AnIdleDrainCutsNothing) {
  EXPECT_EQ(server_->Drain(std::chrono::seconds(0), std::chrono::hours(1)), 0);
}

TEST_F(ServerTest, TheAdminListenerAnswersWhereTheMainOneIsFull) {
  engine_->hold_decode = true;
  std::vector<std::unique_ptr<HttpClient>> streams;
  for (int i = 0; i < 4; ++i) {
    streams.push_back(std::make_unique<HttpClient>(server_->http_address()));
    streams.back()->SendRequest("POST", "/v1/completions",
                                R"({"prompt": "abc", "max_tokens": 4, "stream": true})");
    ASSERT_TRUE(WaitUntil([&] { return engine_->used_slots == i + 1; }));
  }
  EXPECT_TRUE(HttpClient(server_->http_address()).Closed());
  EXPECT_EQ(Admin("/health").status, 200);
  EXPECT_EQ(Admin("/ready").status, 200);
  EXPECT_EQ(Admin("/version").status, 200);
  const std::string metrics = Admin("/metrics").body;
  EXPECT_NE(metrics.find("hippodrome_http_connections{listener=\"main\"} 4"), std::string::npos);
  EXPECT_NE(metrics.find("hippodrome_http_connections{listener=\"admin\"} 1"), std::string::npos);
  EXPECT_EQ(Admin("/v1/models").status, 404);
  engine_->hold_decode = false;
  for (const auto& stream : streams) EXPECT_EQ(stream->Read().status, 200);
}

TEST_F(ServerTest, TheGracePeriodCanBeEnded) {
  engine_->hold_decode = true;
  const auto stream = OpenStream();
  std::thread drain([&] { server_->Drain(std::chrono::seconds(0), std::chrono::hours(1)); });
  server_->EndGracePeriod();
  EXPECT_NE(stream->Read().body.find("\"code\":\"unavailable\""), std::string::npos);
  drain.join();
}

TEST_F(ServerTest, ATakenPortIsAnError) {
  ServerOptions other = options_;
  other.http.address = server_->http_address();
  std::vector<ModelParts> models;
  models.push_back(NewFakeModel("m"));
  EXPECT_TRUE(absl::IsUnavailable(Server::Start(other, std::move(models)).status()));
}

TEST_F(ServerTest, DestroyingItWithStreamsOpenEndsThem) {
  engine_->hold_decode = true;
  const auto stream = OpenStream();
  server_.reset();
  EXPECT_TRUE(stream->Closed() || stream->Read().status == 0);
}

}  // namespace
}  // namespace hippodrome::server_test
