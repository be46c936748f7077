#include "server/grpc/grpc_server.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <sys/socket.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "engine/base/status.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "hippodrome/v1/generation.grpc.pb.h"
#include "hippodrome/v1/models.grpc.pb.h"
#include "server/address.h"
#include "server/grpc/accept_loop.h"
#include "tests/testing/fake_model.h"
#include "tests/testing/wait_until.h"

namespace hippodrome::grpc_server_test {
namespace {

class GrpcServerTest : public testing::Test {
 protected:
  GrpcServerTest() {
    std::vector<std::unique_ptr<ServedModel>> models;
    models.push_back(
        NewServedModel(NewFakeModel("m", {.slots = 16, .pages = 4096}, &engine_), metrics_));
    handlers_ = std::make_unique<Handlers>(std::move(models), RequestLimits());
    Serve(GrpcOptions());
  }

  void Serve(GrpcOptions options) {
    options.address = "127.0.0.1:0";
    server_ = GrpcServer::Start(options, *handlers_, metrics_, access_).value();
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    channel_ = grpc::CreateCustomChannel(server_->address(), grpc::InsecureChannelCredentials(),
                                         arguments);
    generation_ = v1::Generation::NewStub(channel_);
  }

  static v1::GenerateRequest Request(const std::string& text, int64_t max_tokens) {
    v1::GenerateRequest request;
    request.set_text(text);
    request.set_max_tokens(max_tokens);
    return request;
  }

  struct Result {
    std::string text;
    std::vector<int32_t> tokens;
    v1::GenerateResponse last;
    grpc::Status status;
  };

  Result Generate(const v1::GenerateRequest& request) {
    grpc::ClientContext context;
    Result result;
    v1::GenerateResponse response;
    const auto reader = generation_->Generate(&context, request);
    while (reader->Read(&response)) {
      result.text += response.text();
      result.tokens.insert(result.tokens.end(), response.token_ids().begin(),
                           response.token_ids().end());
      result.last = response;
    }
    result.status = reader->Finish();
    return result;
  }

  // How a method with any name and messages ends.
  grpc::StatusCode Call(const std::string& method, std::string request = "") {
    grpc::GenericStub stub(channel_);
    grpc::ClientContext context;
    grpc::CompletionQueue queue;
    grpc::Slice slice(request);
    const auto call = stub.PrepareUnaryCall(&context, method, grpc::ByteBuffer(&slice, 1), &queue);
    call->StartCall();
    grpc::ByteBuffer answer;
    grpc::Status status;
    call->Finish(&answer, &status, this);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    return status.error_code();
  }

  grpc::Status Tokenize(const std::string& text, v1::TokenizeResponse* response,
                        grpc_compression_algorithm compression = GRPC_COMPRESS_NONE) {
    grpc::ClientContext context;
    context.set_compression_algorithm(compression);
    v1::TokenizeRequest request;
    request.set_text(text);
    return generation_->Tokenize(&context, request, response);
  }

  // A connection that says nothing.
  Descriptor Connect() {
    const HostPort where = ParseAddress(server_->address()).value();
    addrinfo* to = nullptr;
    getaddrinfo(where.host.c_str(), std::to_string(where.port).c_str(), nullptr, &to);
    Descriptor connection(socket(to->ai_family, SOCK_STREAM, 0));
    EXPECT_EQ(connect(connection.get(), to->ai_addr, to->ai_addrlen), 0);
    freeaddrinfo(to);
    return connection;
  }

  bool MetricsSay(const std::string& line) {
    return WaitUntil([&] { return metrics_.Text().find(line + "\n") != std::string::npos; });
  }

  bool AllFree() {
    return WaitUntil([&] { return engine_->used_slots == 0 && engine_->used_pages == 0; });
  }

  Metrics metrics_;
  const AccessControl access_{"", metrics_};
  FakeEngine* engine_ = nullptr;
  std::unique_ptr<Handlers> handlers_;
  std::unique_ptr<GrpcServer> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Generation::Stub> generation_;
};

TEST_F(GrpcServerTest, StreamsATextWithItsUsage) {
  const Result result = Generate(Request("abc", 7));
  ASSERT_TRUE(result.status.ok()) << result.status.error_message();
  EXPECT_EQ(result.text, "abcabca");
  EXPECT_EQ(result.tokens.size(), 7u);
  EXPECT_EQ(result.last.finish_reason(), v1::FINISH_REASON_LENGTH);
  EXPECT_EQ(result.last.usage().prompt_tokens(), 3);
  EXPECT_EQ(result.last.usage().completion_tokens(), 7);
}

TEST_F(GrpcServerTest, ErrorsKeepTheirCodes) {
  v1::GenerateRequest request = Request("x", 5);
  request.set_top_p(2);
  EXPECT_EQ(Generate(request).status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(Generate(request).status.error_message().find("top_p"), std::string::npos);
  request = Request("x", 5);
  request.set_model("no");
  EXPECT_EQ(Generate(request).status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(Generate(Request("x", 1 << 20)).status.error_code(), grpc::StatusCode::OUT_OF_RANGE);
}

TEST_F(GrpcServerTest, CallsHaveIds) {
  const std::string trace = "4bf92f3577b34da6a3ce929d0e0e4736";
  grpc::ClientContext context;
  context.AddMetadata("x-request-id", "mine.1");
  context.AddMetadata("traceparent", "00-" + trace + "-00f067aa0ba902b7-01");
  v1::TokenizeRequest request;
  v1::TokenizeResponse response;
  ASSERT_TRUE(generation_->Tokenize(&context, request, &response).ok());
  const auto& metadata = context.GetServerInitialMetadata();
  const auto value = [&](const char* name) {
    const auto found = metadata.find(name);
    return found == metadata.end() ? "" : std::string(found->second.data(), found->second.size());
  };
  EXPECT_EQ(value("x-request-id"), "mine.1");
  EXPECT_EQ(value("traceparent").substr(0, 36), "00-" + trace + "-");
  EXPECT_EQ(value("traceparent").find("00f067aa0ba902b7"), std::string::npos);
}

TEST_F(GrpcServerTest, IdsThatAreThereTwiceAreMadeAnew) {
  grpc::ClientContext context;
  context.AddMetadata("x-request-id", "one");
  context.AddMetadata("x-request-id", "two");
  v1::TokenizeRequest request;
  v1::TokenizeResponse response;
  ASSERT_TRUE(generation_->Tokenize(&context, request, &response).ok());
  const auto& metadata = context.GetServerInitialMetadata();
  ASSERT_EQ(metadata.count("x-request-id"), 1U);
  EXPECT_EQ(metadata.find("x-request-id")->second.size(), 32U);
}

TEST_F(GrpcServerTest, ManyStreamsAtOnce) {
  std::vector<std::thread> threads;
  std::atomic<int> good = 0;
  for (int i = 0; i < 32; ++i) {
    threads.emplace_back([&, i] {
      const std::string prompt(1, static_cast<char>('a' + i % 26));
      const Result result = Generate(Request(prompt, 200));
      good += result.status.ok() && result.text == std::string(200, prompt[0]) ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 32);
  EXPECT_TRUE(AllFree());
}

TEST_F(GrpcServerTest, ACancelledCallFreesEverything) {
  engine_->hold_decode = true;
  grpc::ClientContext context;
  const auto reader = generation_->Generate(&context, Request("abc", 5));
  v1::GenerateResponse response;
  ASSERT_TRUE(reader->Read(&response));
  context.TryCancel();
  EXPECT_TRUE(AllFree());
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(GrpcServerTest, ADeadlineEndsTheCallAndFreesEverything) {
  engine_->hold_prefill = true;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(100));
  const auto reader = generation_->Generate(&context, Request("abc", 5));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_TRUE(AllFree());
  // Whoever sees it first, client or server: it is no cancel.
  EXPECT_TRUE(MetricsSay(R"(hippodrome_request_failures_total{reason="deadline"} 1)"));
}

TEST_F(GrpcServerTest, AMillisecondForALongText) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(1));
  const auto reader = generation_->Generate(&context, Request("abc", 4000));
  v1::GenerateResponse response;
  while (reader->Read(&response)) {
  }
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_TRUE(AllFree());
}

TEST_F(GrpcServerTest, ACallCancelledAtItsBeginFreesEverything) {
  engine_->hold_prefill = true;
  grpc::ClientContext context;
  // Far away, so that this is no deadline.
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::hours(1));
  const auto reader = generation_->Generate(&context, Request("abc", 5));
  ASSERT_TRUE(WaitUntil([&] { return engine_->used_slots == 1; }));
  context.TryCancel();
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(AllFree());
  EXPECT_TRUE(MetricsSay(R"(hippodrome_request_failures_total{reason="cancelled"} 1)"));
}

TEST_F(GrpcServerTest, OverloadSaysWhenToTryAgain) {
  handlers_->Close();
  grpc::ClientContext context;
  const auto reader = generation_->Generate(&context, Request("abc", 5));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  const auto& trailers = context.GetServerTrailingMetadata();
  const auto hint = trailers.find("retry-after");
  ASSERT_NE(hint, trailers.end());
  EXPECT_EQ(std::string(hint->second.data(), hint->second.size()), "1");
}

TEST_F(GrpcServerTest, CompressedMessagesAreRefused) {
  v1::TokenizeResponse response;
  const std::string text(1 << 20, 'a');
  ASSERT_TRUE(Tokenize(text, &response).ok());
  for (const auto algorithm : {GRPC_COMPRESS_GZIP, GRPC_COMPRESS_DEFLATE}) {
    EXPECT_EQ(Tokenize(text, &response, algorithm).error_code(), grpc::StatusCode::UNIMPLEMENTED);
  }
}

TEST_F(GrpcServerTest, MessagesUpToTheLimitBothWays) {
  v1::TokenizeResponse response;
  // Beside the text: the field's number, and its length in four bytes.
  const size_t most = static_cast<size_t>(GrpcOptions().max_message_bytes) - 5;
  ASSERT_TRUE(Tokenize(std::string(most, 'a'), &response).ok());
  EXPECT_EQ(response.token_ids_size(), static_cast<int>(most));
  EXPECT_EQ(Tokenize(std::string(most + 1, 'a'), &response).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(GrpcServerTest, WhatDoesNotExistIsUnimplemented) {
  EXPECT_EQ(Call("/hippodrome.v1.Models/List"), grpc::StatusCode::OK);
  EXPECT_EQ(Call("/hippodrome.v1.Models/No"), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(Call("/hippodrome.v1.No/List"), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_FALSE(Call("/hippodrome.v1.Models/Get", "no message") == grpc::StatusCode::OK);
}

TEST_F(GrpcServerTest, UnknownMetadataIsIgnored) {
  const auto models = v1::Models::NewStub(channel_);
  grpc::ClientContext context;
  context.AddMetadata("x-custom", "value");
  context.AddMetadata("x-custom-bin", std::string("\0\1\377", 3));
  v1::ListModelsResponse list;
  EXPECT_TRUE(models->List(&context, v1::ListModelsRequest(), &list).ok());
}

TEST_F(GrpcServerTest, MetadataHasALimit) {
  const auto models = v1::Models::NewStub(channel_);
  grpc::ClientContext context;
  context.AddMetadata("x-custom", std::string(17 << 10, 'a'));
  v1::ListModelsResponse list;
  EXPECT_EQ(models->List(&context, v1::ListModelsRequest(), &list).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(GrpcServerTest, CallsBeyondTheStreamsOfAConnectionWait) {
  Serve({.max_streams = 1});
  std::vector<std::thread> threads;
  std::atomic<int> good = 0;
  for (int i = 0; i < 10; ++i) {
    threads.emplace_back([&] { good += Generate(Request("abc", 20)).status.ok() ? 1 : 0; });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 10);
}

TEST_F(GrpcServerTest, ASilentConnectionIsClosed) {
  Serve({.handshake_timeout = std::chrono::seconds(1)});
  const Descriptor silent = Connect();
  EXPECT_TRUE(MetricsSay("hippodrome_grpc_connections 1"));
  // gRPC says its settings at once; then comes the end.
  char bytes[256];
  while (recv(silent.get(), bytes, sizeof(bytes), 0) > 0) {
  }
  EXPECT_TRUE(MetricsSay("hippodrome_grpc_connections 0"));
}

TEST_F(GrpcServerTest, ConnectionsBeyondTheLimitAreClosed) {
  Serve({.max_connections_per_address = 1});
  ASSERT_EQ(Call("/hippodrome.v1.Models/List"), grpc::StatusCode::OK);
  const Descriptor second = Connect();
  char byte;
  EXPECT_LE(recv(second.get(), &byte, 1, 0), 0);
  EXPECT_TRUE(MetricsSay(R"(hippodrome_grpc_connections_refused_total{reason="address_full"} 1)"));
  EXPECT_EQ(Call("/hippodrome.v1.Models/List"), grpc::StatusCode::OK);
}

TEST_F(GrpcServerTest, AnOldConnectionIsReplaced) {
  Serve({.connection_age = std::chrono::seconds(1)});
  ASSERT_EQ(Call("/hippodrome.v1.Models/List"), grpc::StatusCode::OK);
  EXPECT_TRUE(MetricsSay("hippodrome_grpc_connections 1"));
  EXPECT_TRUE(MetricsSay("hippodrome_grpc_connections 0"));
  EXPECT_EQ(Call("/hippodrome.v1.Models/List"), grpc::StatusCode::OK);
}

TEST_F(GrpcServerTest, AnAbortedStreamIsUnavailable) {
  engine_->hold_decode = true;
  grpc::ClientContext context;
  const auto reader = generation_->Generate(&context, Request("abc", 5));
  v1::GenerateResponse response;
  ASSERT_TRUE(reader->Read(&response));
  handlers_->Abort();
  EXPECT_FALSE(reader->Read(&response));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(GrpcServerTest, ScoresComeWithTheTokens) {
  v1::GenerateRequest request = Request("abd", 2);
  request.set_log_probabilities(2);
  request.set_score_prompt(true);
  grpc::ClientContext context;
  const auto reader = generation_->Generate(&context, request);
  v1::GenerateResponse first, second;
  ASSERT_TRUE(reader->Read(&first));
  ASSERT_TRUE(reader->Read(&second));
  ASSERT_EQ(first.prompt_scores_size(), 3);
  EXPECT_EQ(first.prompt_scores(0).top_size(), 0);
  EXPECT_EQ(first.prompt_scores(2).log_probability(), FakeLogProbability('b', 'd'));
  ASSERT_EQ(first.scores_size(), 1);
  EXPECT_EQ(first.scores(0).log_probability(), FakeLogProbability('d', 'a'));
  ASSERT_EQ(first.scores(0).top_size(), 2);
  EXPECT_EQ(first.scores(0).top(0).token(), 'e');
  EXPECT_EQ(second.prompt_scores_size(), 0);
  EXPECT_EQ(second.scores(0).log_probability(), FakeLogProbability('a', 'b'));
}

TEST_F(GrpcServerTest, Score) {
  v1::ScoreRequest request;
  request.set_text("a");
  request.add_continuations()->set_text("b");
  request.add_continuations()->set_text("xy");
  grpc::ClientContext context;
  v1::ScoreResponse response;
  ASSERT_TRUE(generation_->Score(&context, request, &response).ok());
  ASSERT_EQ(response.scores_size(), 2);
  EXPECT_EQ(response.scores(0).log_probability(), FakeLogProbability('a', 'b'));
  EXPECT_TRUE(response.scores(0).greedy());
  EXPECT_FALSE(response.scores(1).greedy());
  EXPECT_EQ(response.scores(1).tokens(), 2);
  EXPECT_TRUE(AllFree());
}

TEST_F(GrpcServerTest, AScoreThatIsRefusedOrGivenUp) {
  grpc::ClientContext refused, late;
  v1::ScoreRequest request;
  v1::ScoreResponse response;
  request.set_text("a");
  EXPECT_EQ(generation_->Score(&refused, request, &response).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  engine_->hold_prefill = true;
  for (int i = 0; i < 128; ++i) request.add_continuations()->set_text("b");
  late.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(100));
  EXPECT_EQ(generation_->Score(&late, request, &response).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_TRUE(AllFree());
}

TEST_F(GrpcServerTest, UnaryCalls) {
  grpc::ClientContext tokenize_context, detokenize_context;
  v1::TokenizeRequest tokenize;
  tokenize.set_text("ab");
  v1::TokenizeResponse tokens;
  ASSERT_TRUE(generation_->Tokenize(&tokenize_context, tokenize, &tokens).ok());
  v1::DetokenizeRequest detokenize;
  *detokenize.mutable_token_ids() = tokens.token_ids();
  v1::DetokenizeResponse text;
  ASSERT_TRUE(generation_->Detokenize(&detokenize_context, detokenize, &text).ok());
  EXPECT_EQ(text.text(), "ab");

  const auto models = v1::Models::NewStub(channel_);
  grpc::ClientContext list_context, get_context, missing_context;
  v1::ListModelsResponse list;
  ASSERT_TRUE(models->List(&list_context, v1::ListModelsRequest(), &list).ok());
  EXPECT_EQ(list.models(0).name(), "m");
  v1::GetModelRequest get;
  v1::Model model;
  EXPECT_TRUE(models->Get(&get_context, get, &model).ok());
  EXPECT_EQ(model.vocab_size(), 257);
  get.set_name("no");
  EXPECT_EQ(models->Get(&missing_context, get, &model).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(GrpcServerTest, HealthIsReadiness) {
  using grpc::health::v1::HealthCheckResponse;
  const auto health = grpc::health::v1::Health::NewStub(channel_);
  const auto status = [&] {
    grpc::ClientContext context;
    HealthCheckResponse response;
    EXPECT_TRUE(health->Check(&context, {}, &response).ok());
    return response.status();
  };
  EXPECT_EQ(status(), HealthCheckResponse::SERVING);
  // As when a model fails, nobody tells the server.
  handlers_->AnnounceStop();
  EXPECT_EQ(status(), HealthCheckResponse::NOT_SERVING);
}

TEST_F(GrpcServerTest, APortThatIsTakenIsAnError) {
  GrpcOptions options;
  options.address = server_->address();
  const auto second = GrpcServer::Start(options, *handlers_, metrics_, access_);
  EXPECT_TRUE(absl::IsUnavailable(second.status()));
  EXPECT_NE(Message(second.status()).find(server_->address()), std::string::npos);
}

TEST_F(GrpcServerTest, StopCancelsWhatIsLeft) {
  engine_->hold_decode = true;
  grpc::ClientContext context;
  const auto reader = generation_->Generate(&context, Request("abc", 5));
  v1::GenerateResponse response;
  ASSERT_TRUE(reader->Read(&response));
  server_->Stop(std::chrono::milliseconds(10));
  EXPECT_FALSE(reader->Finish().ok());
  EXPECT_TRUE(AllFree());
}

}  // namespace
}  // namespace hippodrome::grpc_server_test
