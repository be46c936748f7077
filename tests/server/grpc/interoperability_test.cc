// The cases of gRPC's interoperability tests, with methods of ours. In grpc_server_test.cc there
// are large_unary, server_streaming, cancel_after_begin, timeout_on_sleeping_server,
// custom_metadata, unimplemented_method and unimplemented_service, client_compressed_unary
// (refused), and max_streams; empty_stream is in encoding_service_test.cc. No method of ours
// streams requests alone (client_streaming), echoes metadata or takes credentials.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "hippodrome/v1/encoding.grpc.pb.h"
#include "hippodrome/v1/generation.grpc.pb.h"
#include "hippodrome/v1/models.grpc.pb.h"
#include "server/grpc/grpc_server.h"
#include "tests/testing/fake_model.h"
#include "tests/testing/wait_until.h"

namespace hippodrome::interoperability_test {
namespace {

using Clock = std::chrono::system_clock;

class InteroperabilityTest : public testing::Test {
 protected:
  InteroperabilityTest() {
    std::vector<std::unique_ptr<ServedModel>> models;
    models.push_back(
        NewServedModel(NewFakeModel("d", {.slots = 16, .pages = 4096}, &decoder_), metrics_));
    models.push_back(NewServedModel(NewFakeEncoderModel("e", {}, &encoder_), metrics_));
    handlers_ = std::make_unique<Handlers>(std::move(models), RequestLimits());
    GrpcOptions options;
    options.address = "127.0.0.1:0";
    server_ = GrpcServer::Start(options, *handlers_, metrics_, access_).value();
    const auto channel =
        grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials());
    generation_ = v1::Generation::NewStub(channel);
    encoding_ = v1::Encoding::NewStub(channel);
    models_ = v1::Models::NewStub(channel);
  }

  static v1::GenerateRequest Generate(int64_t tokens) {
    v1::GenerateRequest request;
    request.set_text("abc");
    request.set_max_tokens(tokens);
    return request;
  }

  static v1::EmbedRequest Embed(int32_t tokens) {
    v1::EmbedRequest request;
    auto& input = *request.add_inputs()->mutable_tokens();
    for (int32_t i = 0; i < tokens; ++i) input.add_ids(7);
    return request;
  }

  bool MetricsSay(const std::string& line) {
    return WaitUntil([&] { return metrics_.Text().find(line + "\n") != std::string::npos; });
  }

  bool Idle() {
    return WaitUntil([&] { return handlers_->pending() == 0 && decoder_->used_pages == 0; });
  }

  Metrics metrics_;
  const AccessControl access_{"", metrics_};
  FakeEngine* decoder_ = nullptr;
  FakeEncoder* encoder_ = nullptr;
  std::unique_ptr<Handlers> handlers_;
  std::unique_ptr<GrpcServer> server_;
  std::unique_ptr<v1::Generation::Stub> generation_;
  std::unique_ptr<v1::Encoding::Stub> encoding_;
  std::unique_ptr<v1::Models::Stub> models_;
};

TEST_F(InteroperabilityTest, EmptyUnary) {
  grpc::ClientContext context;
  v1::ListModelsResponse response;
  EXPECT_TRUE(models_->List(&context, v1::ListModelsRequest(), &response).ok());
  EXPECT_EQ(response.models_size(), 2);
}

TEST_F(InteroperabilityTest, PingPong) {
  grpc::ClientContext context;
  const auto stream = encoding_->EmbedStream(&context);
  for (const int32_t tokens : {3, 1, 32, 2}) {
    ASSERT_TRUE(stream->Write(Embed(tokens)));
    v1::EmbedResponse response;
    ASSERT_TRUE(stream->Read(&response));
    EXPECT_EQ(response.usage().tokens(), tokens);
  }
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(InteroperabilityTest, CancelAfterFirstResponse) {
  grpc::ClientContext context;
  const auto stream = encoding_->EmbedStream(&context);
  ASSERT_TRUE(stream->Write(Embed(3)));
  v1::EmbedResponse response;
  ASSERT_TRUE(stream->Read(&response));
  context.TryCancel();
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(Idle());
  // Of a stream of the server alone.
  grpc::ClientContext reading;
  const auto reader = generation_->Generate(&reading, Generate(60000));
  v1::GenerateResponse token;
  ASSERT_TRUE(reader->Read(&token));
  reading.TryCancel();
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(Idle());
}

TEST_F(InteroperabilityTest, StatusCodeAndSpecialMessage) {
  // gRPC escapes what HTTP cannot carry.
  const std::string special = "\t\ntest with whitespace\r\nand Unicode BMP ☺ and non-BMP 😈\t\n%41";
  v1::GetModelRequest request;
  request.set_name(special);
  grpc::ClientContext unary, stream;
  v1::Model model;
  const grpc::Status status = models_->Get(&unary, request, &model);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_NE(status.error_message().find(special), std::string::npos) << status.error_message();

  v1::GenerateRequest generate = Generate(3);
  generate.set_model(special);
  const auto reader = generation_->Generate(&stream, generate);
  v1::GenerateResponse response;
  EXPECT_FALSE(reader->Read(&response));
  const grpc::Status end = reader->Finish();
  EXPECT_EQ(end.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_NE(end.error_message().find(special), std::string::npos) << end.error_message();
}

TEST_F(InteroperabilityTest, ManyLargeUnaryCallsAtOnceAreNoFlood) {
  constexpr int kCalls = 32;
  const std::string text(1 << 20, 'a');
  std::atomic<int> good = 0;
  std::vector<std::thread> callers;
  for (int i = 0; i < kCalls; ++i) {
    callers.emplace_back([&] {
      grpc::ClientContext context;
      v1::TokenizeRequest request;
      request.set_text(text);
      v1::TokenizeResponse response;
      const bool ok = generation_->Tokenize(&context, request, &response).ok();
      good += ok && response.token_ids_size() == 1 << 20 ? 1 : 0;
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(good, kCalls);
  EXPECT_TRUE(MetricsSay("hippodrome_grpc_connections_cut_total 0"));
}

// Each call in turn, none of which can end by itself.
class CallsThatHang : public InteroperabilityTest {
 protected:
  grpc::StatusCode Hang(int kind, grpc::ClientContext& context) {
    switch (kind) {
      case 0: {
        const auto reader = generation_->Generate(&context, Generate(100));
        v1::GenerateResponse response;
        while (reader->Read(&response)) {
        }
        return reader->Finish().error_code();
      }
      case 1: {
        v1::ScoreRequest request;
        request.set_text("a");
        request.add_continuations()->set_text("bc");
        v1::ScoreResponse response;
        return generation_->Score(&context, request, &response).error_code();
      }
      case 2: {
        v1::EmbedResponse response;
        return encoding_->Embed(&context, Embed(3), &response).error_code();
      }
      default: {
        const auto stream = encoding_->EmbedStream(&context);
        stream->Write(Embed(3));
        v1::EmbedResponse response;
        while (stream->Read(&response)) {
        }
        return stream->Finish().error_code();
      }
    }
  }
};

TEST_F(CallsThatHang, EndAtTheirDeadlines) {
  decoder_->hold_prefill = true;
  encoder_->hold = true;
  constexpr int kCallers = 16, kCallsEach = 10;
  std::atomic<int> good = 0;
  std::vector<std::thread> callers;
  for (int i = 0; i < kCallers; ++i) {
    callers.emplace_back([&, i] {
      std::mt19937 random(static_cast<uint32_t>(i));
      for (int call = 0; call < kCallsEach; ++call) {
        grpc::ClientContext context;
        const std::chrono::milliseconds time(1 + random() % 100);
        context.set_deadline(Clock::now() + time);
        good += Hang(call % 4, context) == grpc::StatusCode::DEADLINE_EXCEEDED ? 1 : 0;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(good, kCallers * kCallsEach);
  encoder_->hold = false;
  decoder_->hold_prefill = false;
  EXPECT_TRUE(Idle());
  EXPECT_TRUE(MetricsSay("hippodrome_request_failures_total{reason=\"cancelled\"} 0"));
  // A call whose time is short may end in the client before it is sent.
  EXPECT_EQ(metrics_.Text().find("hippodrome_request_failures_total{reason=\"deadline\"} 0\n"),
            std::string::npos);
}

}  // namespace
}  // namespace hippodrome::interoperability_test
