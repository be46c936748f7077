#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "inference/open_inference.grpc.pb.h"
#include "server/grpc/grpc_server.h"
#include "server/handlers/tensor_contents.h"
#include "tests/testing/fake_model.h"
#include "tests/testing/wait_until.h"

namespace hippodrome::kserve_service_test {
namespace {

using inference::ModelInferRequest;
using inference::ModelInferResponse;
using testing::HasSubstr;

class KServeServiceTest : public testing::Test {
 protected:
  KServeServiceTest() {
    std::vector<std::unique_ptr<ServedModel>> models;
    models.push_back(NewServedModel(NewFakeModel("h3", {}, &engine_), metrics_));
    FakeEncoderOptions options;
    options.vocab_size = 68;  // the tokenizer's
    models.push_back(NewServedModel(NewFakeEncoderModel("m", options, &encoder_), metrics_));
    handlers_ = std::make_unique<Handlers>(std::move(models), RequestLimits());
    GrpcOptions grpc;
    grpc.address = "127.0.0.1:0";
    server_ = GrpcServer::Start(grpc, *handlers_, metrics_, access_).value();
    stub_ = inference::GRPCInferenceService::NewStub(
        grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials()));
  }

  static ModelInferRequest Request(const std::string& model, const std::string& input,
                                   const std::vector<std::string>& texts) {
    ModelInferRequest request;
    request.set_model_name(model);
    auto& tensor = *request.add_inputs();
    tensor.set_name(input);
    tensor.set_datatype("BYTES");
    tensor.add_shape(static_cast<int64_t>(texts.size()));
    for (const std::string& text : texts) tensor.mutable_contents()->add_bytes_contents(text);
    return request;
  }

  grpc::Status Infer(const ModelInferRequest& request, ModelInferResponse& response) {
    grpc::ClientContext context;
    return stub_->ModelInfer(&context, request, &response);
  }

  Metrics metrics_;
  const AccessControl access_{"", metrics_};
  FakeEngine* engine_ = nullptr;
  FakeEncoder* encoder_ = nullptr;
  std::unique_ptr<Handlers> handlers_;
  std::unique_ptr<GrpcServer> server_;
  std::unique_ptr<inference::GRPCInferenceService::Stub> stub_;
};

TEST_F(KServeServiceTest, HealthOfTheServerAndOfModels) {
  const auto ready = [&](const std::string& name, const std::string& version) {
    grpc::ClientContext context;
    inference::ModelReadyRequest request;
    request.set_name(name);
    request.set_version(version);
    inference::ModelReadyResponse response;
    const grpc::Status status = stub_->ModelReady(&context, request, &response);
    return status.ok() ? (response.ready() ? "ready" : "not ready") : status.error_message();
  };
  EXPECT_EQ(ready("m", ""), "ready");
  EXPECT_EQ(ready("m", "1"), "ready");
  EXPECT_THAT(ready("m", "2"), HasSubstr("version '2'"));
  EXPECT_THAT(ready("no", ""), HasSubstr("'no'"));
  handlers_->Close();
  EXPECT_EQ(ready("m", ""), "not ready");
  grpc::ClientContext live_context, ready_context;
  inference::ServerLiveResponse live;
  EXPECT_TRUE(stub_->ServerLive(&live_context, {}, &live).ok());
  EXPECT_TRUE(live.live());
  inference::ServerReadyResponse server;
  EXPECT_TRUE(stub_->ServerReady(&ready_context, {}, &server).ok());
  EXPECT_FALSE(server.ready());
}

TEST_F(KServeServiceTest, Metadata) {
  grpc::ClientContext server_context, model_context;
  inference::ServerMetadataResponse server;
  ASSERT_TRUE(stub_->ServerMetadata(&server_context, {}, &server).ok());
  EXPECT_EQ(server.name(), "hippodrome");
  inference::ModelMetadataRequest request;
  request.set_name("h3");
  inference::ModelMetadataResponse model;
  ASSERT_TRUE(stub_->ModelMetadata(&model_context, request, &model).ok());
  ASSERT_EQ(model.inputs_size(), 1);
  EXPECT_EQ(model.inputs(0).name(), "text_input");
  EXPECT_EQ(model.outputs(0).datatype(), "BYTES");
}

TEST_F(KServeServiceTest, RawInputsGetRawOutputsWithTheSameNumbers) {
  ModelInferRequest plain = Request("m", "text", {"paris", "lyon"});
  plain.set_id("7");
  plain.add_outputs()->set_name("scores");
  ModelInferResponse typed;
  ASSERT_TRUE(Infer(plain, typed).ok());
  EXPECT_EQ(typed.id(), "7");
  ASSERT_EQ(typed.outputs_size(), 1);
  EXPECT_EQ(typed.outputs(0).contents().fp32_contents_size(), 6);

  ModelInferRequest raw = plain;
  raw.mutable_inputs(0)->clear_contents();
  raw.add_raw_input_contents(std::string("\5\0\0\0paris\4\0\0\0lyon", 17));
  ModelInferResponse bytes;
  ASSERT_TRUE(Infer(raw, bytes).ok());
  ASSERT_EQ(bytes.raw_output_contents_size(), 1);
  EXPECT_FALSE(bytes.outputs(0).has_contents());
  EXPECT_EQ(bytes.raw_output_contents(0), RawContents(typed.outputs(0)));
}

TEST_F(KServeServiceTest, ADecoderAnswersWithText) {
  ModelInferRequest request = Request("h3", "text_input", {"abc"});
  (*request.mutable_parameters())["max_tokens"].set_int64_param(4);
  (*request.mutable_parameters())["temperature"].set_double_param(0);
  ModelInferResponse response;
  ASSERT_TRUE(Infer(request, response).ok());
  EXPECT_EQ(response.outputs(0).contents().bytes_contents(0), "abca");
}

TEST_F(KServeServiceTest, ErrorsNameWhatIsWrong) {
  ModelInferResponse response;
  ModelInferRequest shape = Request("m", "text", {"a"});
  shape.mutable_inputs(0)->set_shape(0, int64_t{1} << 62);
  grpc::Status status = Infer(shape, response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("text: the shape"));
  ModelInferRequest parameter = Request("h3", "text_input", {"a"});
  (*parameter.mutable_parameters())["max_tokens"].set_string_param("4");
  EXPECT_THAT(Infer(parameter, response).error_message(), HasSubstr("max_tokens: expected an int"));
  EXPECT_EQ(Infer(Request("no", "text", {"a"}), response).error_code(),
            grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(Infer(Request("", "text", {"a"}), response).error_message(), HasSubstr("model_name"));
  EXPECT_EQ(handlers_->pending(), 0);
}

TEST_F(KServeServiceTest, ADeadlineStopsTheWork) {
  engine_->hold_decode = true;
  encoder_->hold = true;
  for (const ModelInferRequest& request :
       {Request("h3", "text_input", {"abc"}), Request("m", "text", {"a"})}) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(50));
    ModelInferResponse response;
    EXPECT_EQ(stub_->ModelInfer(&context, request, &response).error_code(),
              grpc::StatusCode::DEADLINE_EXCEEDED);
  }
  encoder_->hold = false;
  EXPECT_TRUE(WaitUntil([&] { return handlers_->pending() == 0 && engine_->used_slots == 0; }));
}

}  // namespace
}  // namespace hippodrome::kserve_service_test
