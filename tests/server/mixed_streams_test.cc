// The demo model behind both transports: nobody's text depends on who else is there.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "hippodrome/v1/generation.grpc.pb.h"
#include "server/load_model.h"
#include "server/server.h"
#include "tests/testing/http_client.h"

namespace hippodrome::mixed_streams_test {
namespace {

constexpr int kStreams = 64;
constexpr int kTokens = 24;

class MixedStreamsTest : public testing::Test {
 protected:
  MixedStreamsTest() {
    LoadOptions load;
    load.weights = DType::kF32;
    load.generator.max_sequences = 24;  // so that some of the streams wait
    load.generator.key_value_bytes = 64 << 20;
    std::vector<ModelParts> models;
    models.push_back(LoadModel("demo", "deploy/models/h3-demo", load).value());
    ServerOptions options;
    options.http.address = "127.0.0.1:0";
    options.grpc.address = "127.0.0.1:0";
    server_ = Server::Start(options, std::move(models)).value();
    stub_ = v1::Generation::NewStub(
        grpc::CreateChannel(server_->grpc_address(), grpc::InsecureChannelCredentials()));
  }

  std::string OverHttp(const std::string& prompt, bool stream) {
    const nlohmann::json request = {
        {"prompt", prompt}, {"max_tokens", kTokens}, {"temperature", 0}, {"stream", stream}};
    const HttpAnswer answer =
        HttpClient(server_->http_address()).Post("/v1/completions", request.dump());
    if (!stream) return Text(answer.body);
    std::string text;
    for (size_t at = 0; (at = answer.body.find("data: {", at)) != std::string::npos;) {
      const size_t end = answer.body.find("\n\n", at);
      text += Text(answer.body.substr(at + 6, end - at - 6));
      at = end;
    }
    return text;
  }

  std::string OverGrpc(const std::string& prompt) {
    grpc::ClientContext context;
    v1::GenerateRequest request;
    request.set_text(prompt);
    request.set_max_tokens(kTokens);
    request.set_temperature(0);
    const auto reader = stub_->Generate(&context, request);
    std::string text;
    for (v1::GenerateResponse response; reader->Read(&response);) text += response.text();
    return reader->Finish().ok() ? text : "failed";
  }

  static std::string Text(const std::string& body) {
    return nlohmann::json::parse(body)["choices"][0]["text"];
  }

  std::unique_ptr<Server> server_;
  std::unique_ptr<v1::Generation::Stub> stub_;
};

std::vector<std::string> Prompts() {
  const std::string source =
      "It was a dark night, and the old man who had come from the sea sat down beside the fire "
      "and told the children of the ships, the storms and the islands that he had seen, until "
      "the youngest of them asked him whether he had ever been afraid of anything at all. ";
  std::mt19937 random(4);
  std::vector<std::string> prompts;
  for (int i = 0; i < kStreams; ++i) {
    const size_t start = random() % (source.size() - 20);
    prompts.push_back(source.substr(start, 10 + random() % 150));
  }
  return prompts;
}

TEST_F(MixedStreamsTest, EachOfManyStreamsGivesItsTextAlone) {
  const std::vector<std::string> prompts = Prompts();
  std::vector<std::string> alone;
  for (const std::string& prompt : prompts) alone.push_back(OverHttp(prompt, false));
  std::vector<std::string> together(kStreams);
  std::vector<std::thread> threads;
  for (int i = kStreams - 1; i >= 0; --i) {
    threads.emplace_back([&, i] {
      together[i] = i % 2 == 0 ? OverGrpc(prompts[i]) : OverHttp(prompts[i], i % 4 == 1);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < kStreams; ++i) {
    EXPECT_FALSE(alone[i].empty());
    EXPECT_EQ(together[i], alone[i]) << prompts[i];
  }
}

}  // namespace
}  // namespace hippodrome::mixed_streams_test
