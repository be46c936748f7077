#include "server/grpc/reflection_service.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "hippodrome/v1/generation.pb.h"

namespace hippodrome::reflection_service_test {
namespace {

using grpc::reflection::v1::ServerReflectionRequest;
using grpc::reflection::v1::ServerReflectionResponse;
using testing::ElementsAre;

class ReflectionTest : public testing::Test {
 protected:
  ReflectionTest() {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&reflection_.v1());
    builder.RegisterService(&reflection_.v1alpha());
    server_ = builder.BuildAndStart();
    channel_ = grpc::CreateChannel("127.0.0.1:" + std::to_string(port),
                                   grpc::InsecureChannelCredentials());
  }

  // The answers of one stream.
  template <typename Service>
  std::vector<ServerReflectionResponse> AskAll(
      const std::vector<ServerReflectionRequest>& requests) {
    grpc::ClientContext context;
    const auto stream = Service::NewStub(channel_)->ServerReflectionInfo(&context);
    std::vector<ServerReflectionResponse> responses(requests.size());
    for (size_t i = 0; i < requests.size(); ++i) {
      EXPECT_TRUE(stream->Write(requests[i]));
      EXPECT_TRUE(stream->Read(&responses[i]));
    }
    stream->WritesDone();
    EXPECT_TRUE(stream->Finish().ok());
    return responses;
  }

  ServerReflectionResponse Ask(const ServerReflectionRequest& request) {
    return AskAll<grpc::reflection::v1::ServerReflection>({request}).front();
  }

  // The names of the files of an answer.
  static std::vector<std::string> Files(const ServerReflectionResponse& response) {
    std::vector<std::string> names;
    for (const std::string& bytes : response.file_descriptor_response().file_descriptor_proto()) {
      google::protobuf::FileDescriptorProto file;
      EXPECT_TRUE(file.ParseFromString(bytes));
      names.push_back(file.name());
    }
    return names;
  }

  Metrics metrics_;
  const AccessControl access_{"", metrics_};
  Reflection reflection_{{"hippodrome.v1.Generation", "x.Y"}, metrics_, access_};
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

TEST_F(ReflectionTest, ListsServicesUnderBothNames) {
  ServerReflectionRequest request;
  request.set_host("h");
  request.set_list_services("");
  const auto check = [&](const ServerReflectionResponse& response) {
    EXPECT_EQ(response.valid_host(), "h");
    EXPECT_EQ(response.original_request().SerializeAsString(), request.SerializeAsString());
    ASSERT_EQ(response.list_services_response().service_size(), 2);
    EXPECT_EQ(response.list_services_response().service(0).name(), "hippodrome.v1.Generation");
    EXPECT_EQ(response.list_services_response().service(1).name(), "x.Y");
  };
  check(AskAll<grpc::reflection::v1::ServerReflection>({request}).front());
  check(AskAll<grpc::reflection::v1alpha::ServerReflection>({request}).front());
}

TEST_F(ReflectionTest, FilesByNameAndBySymbol) {
  const std::string name = v1::GenerateRequest::descriptor()->file()->name();
  ServerReflectionRequest by_name;
  by_name.set_file_by_filename(name);
  EXPECT_EQ(Files(Ask(by_name)).front(), name);
  for (const char* symbol :
       {"hippodrome.v1.Generation", "hippodrome.v1.Generation.Generate",
        "hippodrome.v1.GenerateRequest", "hippodrome.v1.GenerateRequest.max_tokens"}) {
    ServerReflectionRequest by_symbol;
    by_symbol.set_file_containing_symbol(symbol);
    EXPECT_EQ(Files(Ask(by_symbol)).front(), name) << symbol;
  }
}

TEST_F(ReflectionTest, AFileComesWithWhatItImports) {
  ServerReflectionRequest request;
  request.set_file_containing_symbol("grpc.reflection.v1alpha.ServerReflection");
  EXPECT_THAT(Files(Ask(request)), ElementsAre("grpc/reflection/v1alpha/reflection.proto",
                                               "grpc/reflection/v1/reflection.proto"));
}

TEST_F(ReflectionTest, Extensions) {
  // No message here has any.
  ServerReflectionRequest request;
  request.set_all_extension_numbers_of_type("hippodrome.v1.GenerateRequest");
  const ServerReflectionResponse numbers = Ask(request);
  EXPECT_EQ(numbers.all_extension_numbers_response().base_type_name(),
            "hippodrome.v1.GenerateRequest");
  EXPECT_EQ(numbers.all_extension_numbers_response().extension_number_size(), 0);
  request.mutable_file_containing_extension()->set_containing_type("hippodrome.v1.GenerateRequest");
  request.mutable_file_containing_extension()->set_extension_number(7);
  EXPECT_EQ(Ask(request).error_response().error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(ReflectionTest, ErrorsAreAnswersAndTheStreamGoesOn) {
  std::vector<ServerReflectionRequest> requests(6);
  requests[0].set_file_by_filename("no.proto");
  requests[1].set_file_containing_symbol("no.Symbol");
  requests[2].set_all_extension_numbers_of_type("no.Message");
  requests[3].mutable_file_containing_extension()->set_containing_type("no.Message");
  requests[5].set_list_services("*");
  const auto responses = AskAll<grpc::reflection::v1::ServerReflection>(requests);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(responses[static_cast<size_t>(i)].error_response().error_code(),
              grpc::StatusCode::NOT_FOUND);
  }
  EXPECT_NE(responses[1].error_response().error_message().find("no.Symbol"), std::string::npos);
  EXPECT_EQ(responses[4].error_response().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(responses[5].list_services_response().service_size(), 2);
}

TEST_F(ReflectionTest, StopEndsIdleStreams) {
  grpc::ClientContext context;
  const auto stub = grpc::reflection::v1::ServerReflection::NewStub(channel_);
  const auto stream = stub->ServerReflectionInfo(&context);
  ServerReflectionRequest request;
  request.set_list_services("");
  ServerReflectionResponse response;
  ASSERT_TRUE(stream->Write(request));
  ASSERT_TRUE(stream->Read(&response));
  reflection_.Stop();
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  server_->Shutdown();
}

}  // namespace
}  // namespace hippodrome::reflection_service_test
