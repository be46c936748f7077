#include "server/grpc/health_service.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>

namespace hippodrome::health_service_test {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

class HealthServiceTest : public testing::Test {
 protected:
  HealthServiceTest() {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&health_);
    server_ = builder.BuildAndStart();
    // A status is longer than the window: it is written once the client asks for it.
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 5);
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    stub_ = grpc::health::v1::Health::NewStub(grpc::CreateCustomChannel(
        "127.0.0.1:" + std::to_string(port), grpc::InsecureChannelCredentials(), arguments));
    health_.SetServing(true);
  }

  static HealthCheckRequest Request(const std::string& service) {
    HealthCheckRequest request;
    request.set_service(service);
    return request;
  }

  grpc::Status Check(const std::string& service, HealthCheckResponse* response) {
    grpc::ClientContext context;
    return stub_->Check(&context, Request(service), response);
  }

  using Reader = std::unique_ptr<grpc::ClientReader<HealthCheckResponse>>;
  Reader Watch(grpc::ClientContext& context, const std::string& service) {
    return stub_->Watch(&context, Request(service));
  }

  static HealthCheckResponse::ServingStatus Next(const Reader& reader) {
    HealthCheckResponse response;
    return reader->Read(&response) ? response.status() : HealthCheckResponse::UNKNOWN;
  }

  std::atomic<bool> ready_ = true;
  HealthService health_{{"a.A", "b.B"}, [this] { return ready_.load(); }};
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<grpc::health::v1::Health::Stub> stub_;
};

TEST_F(HealthServiceTest, Check) {
  HealthCheckResponse response;
  for (const char* service : {"", "a.A", "b.B"}) {
    ASSERT_TRUE(Check(service, &response).ok());
    EXPECT_EQ(response.status(), HealthCheckResponse::SERVING);
  }
  health_.SetServing(false);
  ASSERT_TRUE(Check("a.A", &response).ok());
  EXPECT_EQ(response.status(), HealthCheckResponse::NOT_SERVING);
  const grpc::Status unknown = Check("c.C", &response);
  EXPECT_EQ(unknown.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_NE(unknown.error_message().find("c.C"), std::string::npos);
}

TEST_F(HealthServiceTest, List) {
  const auto list = [this] {
    grpc::ClientContext context;
    grpc::health::v1::HealthListResponse response;
    EXPECT_TRUE(stub_->List(&context, {}, &response).ok());
    return response;
  };
  auto statuses = list().statuses();
  ASSERT_EQ(statuses.size(), 3u);
  for (const char* service : {"", "a.A", "b.B"}) {
    EXPECT_EQ(statuses[service].status(), HealthCheckResponse::SERVING);
  }
  health_.SetServing(false);
  statuses = list().statuses();
  EXPECT_EQ(statuses["b.B"].status(), HealthCheckResponse::NOT_SERVING);
}

TEST_F(HealthServiceTest, AWatchSeesChanges) {
  grpc::ClientContext context;
  const Reader reader = Watch(context, "a.A");
  EXPECT_EQ(Next(reader), HealthCheckResponse::SERVING);
  health_.SetServing(false);
  EXPECT_EQ(Next(reader), HealthCheckResponse::NOT_SERVING);
  health_.SetServing(false);  // no change, so no message
  health_.SetServing(true);
  EXPECT_EQ(Next(reader), HealthCheckResponse::SERVING);
  context.TryCancel();
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(HealthServiceTest, WhatIsNotReadyDoesNotServe) {
  grpc::ClientContext context;
  const Reader reader = Watch(context, "a.A");
  EXPECT_EQ(Next(reader), HealthCheckResponse::SERVING);
  ready_ = false;
  // Nobody calls SetServing().
  EXPECT_EQ(Next(reader), HealthCheckResponse::NOT_SERVING);
  HealthCheckResponse response;
  ASSERT_TRUE(Check("", &response).ok());
  EXPECT_EQ(response.status(), HealthCheckResponse::NOT_SERVING);
  ready_ = true;
  EXPECT_EQ(Next(reader), HealthCheckResponse::SERVING);
  health_.SetServing(false);
  EXPECT_EQ(Next(reader), HealthCheckResponse::NOT_SERVING);
  context.TryCancel();
}

TEST_F(HealthServiceTest, AWatchOfAnUnknownServiceStaysOpen) {
  grpc::ClientContext context;
  const Reader reader = Watch(context, "c.C");
  EXPECT_EQ(Next(reader), HealthCheckResponse::SERVICE_UNKNOWN);
  health_.Stop();
  EXPECT_EQ(Next(reader), HealthCheckResponse::UNKNOWN);
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(HealthServiceTest, StopEndsAWatchAfterTheLatestStatus) {
  grpc::ClientContext context;
  const Reader reader = Watch(context, "");
  HealthCheckResponse response;
  ASSERT_TRUE(reader->Read(&response));
  health_.SetServing(false);
  health_.SetServing(true);  // while the other is being written
  health_.Stop();
  while (reader->Read(&response)) {
  }
  EXPECT_EQ(response.status(), HealthCheckResponse::SERVING);
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(HealthServiceTest, StopEndsWatches) {
  grpc::ClientContext before, after;
  const Reader reader = Watch(before, "");
  EXPECT_EQ(Next(reader), HealthCheckResponse::SERVING);
  health_.Stop();
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  const Reader late = Watch(after, "");
  Next(late);
  EXPECT_EQ(late->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  // Nothing is left that it would have to wait for: without a deadline, a call would hang it.
  server_->Shutdown();
}

}  // namespace
}  // namespace hippodrome::health_service_test
