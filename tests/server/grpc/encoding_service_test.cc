#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "engine/base/status.h"
#include "hippodrome/v1/encoding.grpc.pb.h"
#include "server/grpc/grpc_server.h"
#include "tests/testing/fake_model.h"
#include "tests/testing/wait_until.h"

namespace hippodrome::encoding_service_test {
namespace {

class EncodingServiceTest : public testing::Test {
 protected:
  EncodingServiceTest() {
    std::vector<std::unique_ptr<ServedModel>> models;
    models.push_back(NewServedModel(NewFakeModel("decoder"), metrics_));
    models.push_back(NewServedModel(NewFakeEncoderModel("m", {}, &engine_), metrics_));
    handlers_ = std::make_unique<Handlers>(std::move(models), RequestLimits());
    GrpcOptions options;
    options.address = "127.0.0.1:0";
    server_ = GrpcServer::Start(options, *handlers_, metrics_, access_).value();
    stub_ = v1::Encoding::NewStub(
        grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials()));
  }

  // One input of two tokens.
  static v1::EmbedRequest Input(int32_t id) {
    v1::EmbedRequest request;
    auto& tokens = *request.add_inputs()->mutable_tokens();
    tokens.add_ids(id % 100);
    tokens.add_ids(id / 100);
    request.set_normalize(false);
    return request;
  }

  bool IsAnswer(int32_t id, const v1::EmbedResponse& response) const {
    const EncoderRequest request{
        .ids = {id % 100, id / 100}, .types = {0, 0}, .task = EncoderTask::kEmbedding};
    if (response.embeddings_size() != 1 || response.usage().tokens() != 2) return false;
    const auto& values = response.embeddings(0).values();
    return std::vector<float>(values.begin(), values.end()) == engine_->Output(request).values;
  }

  bool Idle() {
    return WaitUntil([&] { return handlers_->pending() == 0; });
  }

  bool MetricsSay(const std::string& part) {
    return WaitUntil([&] { return metrics_.Text().find(part) != std::string::npos; });
  }

  Metrics metrics_;
  const AccessControl access_{"", metrics_};
  FakeEncoder* engine_ = nullptr;
  std::unique_ptr<Handlers> handlers_;
  std::unique_ptr<GrpcServer> server_;
  std::unique_ptr<v1::Encoding::Stub> stub_;
};

TEST_F(EncodingServiceTest, OneCallHasOneAnswer) {
  grpc::ClientContext context;
  v1::EmbedResponse response;
  const grpc::Status status = stub_->Embed(&context, Input(7), &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_TRUE(IsAnswer(7, response));
  EXPECT_TRUE(MetricsSay(
      "hippodrome_requests_total{api=\"grpc\",code=\"ok\",model=\"m\",route=\"Embed\"} 1"));
}

TEST_F(EncodingServiceTest, EveryTaskIsThere) {
  grpc::ClientContext classify, tag, fill, answer;
  v1::ClassifyRequest request;
  request.add_inputs()->set_text("paris");
  v1::ClassifyResponse classes;
  EXPECT_TRUE(stub_->Classify(&classify, request, &classes).ok());
  EXPECT_EQ(classes.results(0).scores_size(), 3);
  // The model has another head.
  v1::TagTokensResponse tags;
  EXPECT_EQ(stub_->TagTokens(&tag, v1::TagTokensRequest(), &tags).error_code(),
            grpc::StatusCode::FAILED_PRECONDITION);
  v1::FillMaskResponse filled;
  EXPECT_EQ(stub_->FillMask(&fill, v1::FillMaskRequest(), &filled).error_code(),
            grpc::StatusCode::FAILED_PRECONDITION);
  v1::AnswerQuestionResponse answers;
  EXPECT_EQ(stub_->AnswerQuestion(&answer, v1::AnswerQuestionRequest(), &answers).error_code(),
            grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_F(EncodingServiceTest, ErrorsKeepTheirCodes) {
  grpc::ClientContext a, b;
  v1::EmbedResponse response;
  v1::EmbedRequest request;
  const grpc::Status status = stub_->Embed(&a, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(status.error_message().find("inputs"), std::string::npos);
  request = Input(7);
  request.set_model("no");
  EXPECT_EQ(stub_->Embed(&b, request, &response).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(EncodingServiceTest, ADeadlineDropsTheCall) {
  engine_->hold = true;
  grpc::ClientContext first, second;
  const auto deadline = std::chrono::system_clock::now() + std::chrono::seconds(1);
  first.set_deadline(deadline);
  second.set_deadline(deadline);
  v1::EmbedResponse response, other;
  std::thread running([&] {
    EXPECT_EQ(stub_->Embed(&first, Input(1), &response).error_code(),
              grpc::StatusCode::DEADLINE_EXCEEDED);
  });
  EXPECT_EQ(stub_->Embed(&second, Input(2), &other).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  running.join();
  // Both calls end while the engine is still busy with what has begun.
  EXPECT_TRUE(MetricsSay("hippodrome_request_failures_total{reason=\"deadline\"} 2"));
  engine_->hold = false;
  EXPECT_TRUE(Idle());
}

TEST_F(EncodingServiceTest, ManyCallsAtOnceGetTheirOwnAnswers) {
  std::vector<std::thread> threads;
  std::atomic<int> good = 0;
  for (int32_t t = 0; t < 16; ++t) {
    threads.emplace_back([&, t] {
      for (int32_t i = 0; i < 50; ++i) {
        grpc::ClientContext context;
        v1::EmbedResponse response;
        const int32_t id = t * 50 + i;
        if (!stub_->Embed(&context, Input(id), &response).ok()) continue;
        good += IsAnswer(id, response) ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 16 * 50);
}

TEST_F(EncodingServiceTest, AStreamIsAnsweredInOrder) {
  grpc::ClientContext context;
  const auto stream = stub_->EmbedStream(&context);
  std::thread writer([&] {
    for (int32_t i = 0; i < 1000; ++i) EXPECT_TRUE(stream->Write(Input(i)));
    stream->WritesDone();
  });
  v1::EmbedResponse response;
  int32_t count = 0;
  for (; stream->Read(&response); ++count) EXPECT_TRUE(IsAnswer(count, response)) << count;
  writer.join();
  EXPECT_EQ(count, 1000);
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_TRUE(MetricsSay("route=\"EmbedStream\"} 1000"));
}

TEST_F(EncodingServiceTest, RequestsOfAStreamRunTogetherUpToABound) {
  engine_->hold = true;
  grpc::ClientContext context;
  const auto stream = stub_->EmbedStream(&context);
  for (int32_t i = 0; i < 100; ++i) ASSERT_TRUE(stream->Write(Input(i)));
  stream->WritesDone();
  EXPECT_TRUE(WaitUntil([&] { return handlers_->pending() == 64; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(handlers_->pending(), 64);
  engine_->hold = false;
  v1::EmbedResponse response;
  int32_t count = 0;
  while (stream->Read(&response)) ++count;
  EXPECT_EQ(count, 100);
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(EncodingServiceTest, AStreamEndsWithItsFirstFailure) {
  grpc::ClientContext context;
  const auto stream = stub_->EmbedStream(&context);
  stream->Write(Input(1));
  stream->Write(Input(2));
  stream->Write(v1::EmbedRequest());
  stream->Write(Input(3));
  v1::EmbedResponse response;
  for (int32_t i = 1; i <= 2; ++i) {
    ASSERT_TRUE(stream->Read(&response));
    EXPECT_TRUE(IsAnswer(i, response));
  }
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_TRUE(Idle());
}

TEST_F(EncodingServiceTest, ACancelledStreamLeavesNothing) {
  engine_->hold = true;
  grpc::ClientContext context;
  const auto stream = stub_->EmbedStream(&context);
  for (int32_t i = 0; i < 10; ++i) ASSERT_TRUE(stream->Write(Input(i)));
  EXPECT_TRUE(WaitUntil([&] { return handlers_->pending() == 10; }));
  context.TryCancel();
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  engine_->hold = false;
  EXPECT_TRUE(Idle());
}

TEST_F(EncodingServiceTest, AnEmptyStreamEndsWell) {
  grpc::ClientContext context;
  const auto stream = stub_->ClassifyStream(&context);
  stream->WritesDone();
  v1::ClassifyResponse response;
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(EncodingServiceTest, AnAbortReachesCallsAndStreams) {
  engine_->hold = true;
  grpc::ClientContext context;
  const auto stream = stub_->EmbedStream(&context);
  ASSERT_TRUE(stream->Write(Input(1)));
  EXPECT_TRUE(WaitUntil([&] { return handlers_->pending() == 1; }));
  handlers_->Abort();
  v1::EmbedResponse response;
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  engine_->hold = false;
}

TEST_F(EncodingServiceTest, TheServerStopsWithStreamsOpen) {
  engine_->hold = true;
  grpc::ClientContext context;
  const auto stream = stub_->EmbedStream(&context);
  ASSERT_TRUE(stream->Write(Input(1)));
  EXPECT_TRUE(WaitUntil([&] { return handlers_->pending() == 1; }));
  server_.reset();
  EXPECT_FALSE(stream->Finish().ok());
  engine_->hold = false;
}

}  // namespace
}  // namespace hippodrome::encoding_service_test
