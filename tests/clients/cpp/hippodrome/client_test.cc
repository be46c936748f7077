#include "clients/cpp/hippodrome/client.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/grpc/grpc_server.h"
#include "server/metrics/state_store_metrics.h"
#include "server/server.h"
#include "server/states/open_state_store.h"
#include "tests/testing/certificates.h"
#include "tests/testing/fake_model.h"
#include "tests/testing/temporary_directory.h"
#include "tests/testing/wait_until.h"

namespace hippodrome::client_test {
namespace {

using client::Client;
using client::Generation;
using client::Options;
using std::chrono::milliseconds;
using testing::ElementsAre;

using Writer = grpc::ServerWriter<v1::GenerateResponse>;
using Clock = std::chrono::steady_clock;

// ---- A service that fails as it is told
// ---------------------------------------------------------

// What one call of Generate does.
using Script =
    std::function<grpc::Status(grpc::ServerContext*, const v1::GenerateRequest&, Writer*)>;

v1::GenerateResponse Part(const std::string& text, const std::vector<int32_t>& ids) {
  v1::GenerateResponse part;
  part.set_text(text);
  for (const int32_t id : ids) {
    part.add_token_ids(id);
    part.add_scores()->set_log_probability(static_cast<float>(-id));
  }
  return part;
}

v1::GenerateResponse Last(v1::GenerateResponse part, int64_t tokens) {
  part.set_finish_reason(v1::FINISH_REASON_LENGTH);
  part.mutable_usage()->set_prompt_tokens(3);
  part.mutable_usage()->set_completion_tokens(tokens);
  return part;
}

v1::GenerateResponse Migrated(v1::GenerateResponse part, const std::string& handle,
                              int64_t prompt_tokens, int64_t position) {
  part.set_finish_reason(v1::FINISH_REASON_MIGRATED);
  part.mutable_usage()->set_prompt_tokens(prompt_tokens);
  part.mutable_usage()->set_completion_tokens(part.token_ids_size());
  part.mutable_state()->set_handle(handle);
  part.mutable_state()->set_position(position);
  return part;
}

// Writes the parts, then ends so.
Script Says(const std::vector<v1::GenerateResponse>& parts,
            const grpc::Status& status = grpc::Status::OK) {
  return [=](grpc::ServerContext*, const v1::GenerateRequest&, Writer* writer) {
    for (const v1::GenerateResponse& part : parts) writer->Write(part);
    return status;
  };
}

Script Refuses(grpc::StatusCode code, const std::string& retry_after = "") {
  return [=](grpc::ServerContext* context, const v1::GenerateRequest&, Writer*) {
    if (!retry_after.empty()) context->AddTrailingMetadata("retry-after", retry_after);
    return grpc::Status(code, "refused");
  };
}

class FakeService : public v1::Generation::Service {
 public:
  // What the next calls do; the last one again and again.
  void Will(std::deque<Script> scripts) {
    const std::lock_guard lock(mutex_);
    scripts_ = std::move(scripts);
  }
  // Of Generate, in their order.
  std::vector<v1::GenerateRequest> requests() {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  std::vector<Clock::time_point> times() {
    const std::lock_guard lock(mutex_);
    return times_;
  }
  // Of the last of them.
  std::string authorization() {
    const std::lock_guard lock(mutex_);
    return authorization_;
  }
  std::atomic<int> refusals = 0;  // of the next calls of Tokenize

  grpc::Status Generate(grpc::ServerContext* context, const v1::GenerateRequest* request,
                        Writer* writer) override {
    Script script;
    {
      const std::lock_guard lock(mutex_);
      const auto& metadata = context->client_metadata();
      const auto key = metadata.find("authorization");
      authorization_.clear();
      if (key != metadata.end()) authorization_.assign(key->second.data(), key->second.size());
      requests_.push_back(*request);
      times_.push_back(Clock::now());
      script = scripts_.front();
      if (scripts_.size() > 1) scripts_.pop_front();
    }
    return script(context, *request, writer);
  }
  // A token for each character.
  grpc::Status Tokenize(grpc::ServerContext*, const v1::TokenizeRequest* request,
                        v1::TokenizeResponse* response) override {
    if (refusals-- > 0) return {grpc::StatusCode::UNAVAILABLE, "refused"};
    for (const char c : request->text()) response->add_token_ids(c);
    return grpc::Status::OK;
  }

 private:
  std::mutex mutex_;  // guards all below
  std::string authorization_;
  std::deque<Script> scripts_;
  std::vector<v1::GenerateRequest> requests_;
  std::vector<Clock::time_point> times_;
};

class ClientTest : public testing::Test {
 protected:
  ClientTest() { Listen(grpc::InsecureServerCredentials()); }
  ~ClientTest() override { server_->Shutdown(std::chrono::system_clock::now()); }

  void Listen(const std::shared_ptr<grpc::ServerCredentials>& credentials) {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", credentials, &port);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    address_ = "127.0.0.1:" + std::to_string(port);
  }

  static v1::GenerateRequest Request() {
    v1::GenerateRequest request;
    request.set_text("abc");
    request.set_max_tokens(8);
    request.set_seed(7);
    return request;
  }

  // The whole answer, as the client puts it together.
  v1::GenerateResponse Generate(const v1::GenerateRequest& request, const Options& options = {}) {
    v1::GenerateResponse whole;
    status_ = Client(address_, options).Generate(request, &whole);
    return whole;
  }

  static std::vector<int32_t> Ids(const v1::GenerateResponse& response) {
    return {response.token_ids().begin(), response.token_ids().end()};
  }

  FakeService service_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
  grpc::Status status_;  // of the last Generate()
};

TEST_F(ClientTest, AStreamIsReadResponseByResponse) {
  service_.Will({Says({Part("a", {1}), Part("b", {2, 3}), Last(Part("c", {4}), 4)})});
  const auto generation = Client(address_).Generate(Request());
  std::vector<std::string> texts;
  for (v1::GenerateResponse response; generation->Read(&response);)
    texts.push_back(response.text());
  EXPECT_THAT(texts, ElementsAre("a", "b", "c"));
  EXPECT_TRUE(generation->Finish().ok());
  EXPECT_EQ(service_.requests().size(), 1u);
}

TEST_F(ClientTest, ResponsesArePutTogether) {
  service_.Will({Says({Part("a", {1}), Part("b", {2, 3}), Last(Part("c", {4}), 4)})});
  const v1::GenerateResponse whole = Generate(Request());
  EXPECT_TRUE(status_.ok());
  EXPECT_EQ(whole.text(), "abc");
  EXPECT_THAT(Ids(whole), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(whole.scores_size(), 4);
  EXPECT_EQ(whole.finish_reason(), v1::FINISH_REASON_LENGTH);
  EXPECT_EQ(whole.usage().completion_tokens(), 4);
}

TEST_F(ClientTest, WhatMayPassIsSentAgain) {
  const Script says = Says({Last(Part("a", {1}), 1)});
  for (const grpc::StatusCode code :
       {grpc::StatusCode::RESOURCE_EXHAUSTED, grpc::StatusCode::UNAVAILABLE,
        grpc::StatusCode::INTERNAL, grpc::StatusCode::UNKNOWN, grpc::StatusCode::CANCELLED}) {
    service_.Will({Refuses(code), says});
    EXPECT_EQ(Generate(Request()).text(), "a");
    EXPECT_TRUE(status_.ok()) << code;
  }
  EXPECT_EQ(service_.requests().size(), 10u);
}

TEST_F(ClientTest, WhatWouldComeAgainIsNotSentAgain) {
  for (const grpc::StatusCode code :
       {grpc::StatusCode::INVALID_ARGUMENT, grpc::StatusCode::NOT_FOUND,
        grpc::StatusCode::FAILED_PRECONDITION, grpc::StatusCode::OUT_OF_RANGE,
        grpc::StatusCode::PERMISSION_DENIED, grpc::StatusCode::UNAUTHENTICATED,
        grpc::StatusCode::UNIMPLEMENTED, grpc::StatusCode::DEADLINE_EXCEEDED}) {
    service_.Will({Refuses(code), Says({})});
    Generate(Request());
    EXPECT_EQ(status_.error_code(), code);
    EXPECT_EQ(status_.error_message(), "refused");
  }
  EXPECT_EQ(service_.requests().size(), 8u);
}

TEST_F(ClientTest, NoPauseIsShorterThanTheServerSays) {
  service_.Will({Refuses(grpc::StatusCode::RESOURCE_EXHAUSTED, "0.3"),
                 Refuses(grpc::StatusCode::UNAVAILABLE, "soon"), Says({Last(Part("a", {1}), 1)})});
  EXPECT_EQ(Generate(Request()).text(), "a");
  const std::vector<Clock::time_point> times = service_.times();
  ASSERT_EQ(times.size(), 3u);
  EXPECT_GE(times[1] - times[0], milliseconds(300));
}

TEST_F(ClientTest, WhereThereIsNoTimeForAnotherAttemptTheLastErrorIsTold) {
  service_.Will({Refuses(grpc::StatusCode::UNAVAILABLE, "3600")});
  Generate(Request());
  EXPECT_EQ(status_.error_code(), grpc::StatusCode::UNAVAILABLE);
  Generate(Request(), {.deadline = std::chrono::hours(1), .retry_time = std::chrono::hours(2)});
  EXPECT_EQ(status_.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(service_.requests().size(), 2u) << "one attempt each";
  service_.Will({Refuses(grpc::StatusCode::UNAVAILABLE)});
  Generate(Request(), {.retry_time = milliseconds(150)});
  EXPECT_EQ(status_.error_message(), "refused");
  EXPECT_GE(service_.requests().size(), 3u);
}

TEST_F(ClientTest, ADeadlineEndsACallWithAllOfItsAttempts) {
  service_.Will({[](grpc::ServerContext* context, const v1::GenerateRequest&, Writer* writer) {
    writer->Write(Part("a", {1}));
    WaitUntil([&] { return context->IsCancelled(); });
    return grpc::Status::CANCELLED;
  }});
  EXPECT_EQ(Generate(Request(), {.deadline = milliseconds(100)}).text(), "a") << "what had come";
  EXPECT_EQ(status_.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_EQ(service_.requests().size(), 1u);
}

TEST_F(ClientTest, ForEverIsNotTooLong) {
  service_.Will({Refuses(grpc::StatusCode::UNAVAILABLE), Says({Last(Part("a", {1}), 1)})});
  EXPECT_EQ(
      Generate(Request(), {.deadline = milliseconds::max(), .retry_time = milliseconds::max()})
          .text(),
      "a");
}

TEST_F(ClientTest, AServerMayStartLater) {
  server_->Shutdown();
  std::thread start([&] {
    std::this_thread::sleep_for(milliseconds(50));
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address_, grpc::InsecureServerCredentials());
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
  });
  service_.Will({Says({Last(Part("a", {1}), 1)})});
  EXPECT_EQ(Generate(Request()).text(), "a");
  start.join();
}

// ---- Streams that break off ---------------------------------------------------------------------

TEST_F(ClientTest, OfABrokenStreamWhatWasHadIsSkipped) {
  v1::GenerateResponse scored = Part("a", {1});
  scored.add_prompt_scores()->set_log_probability(-3);
  const grpc::Status broken(grpc::StatusCode::UNKNOWN, "Stream removed");
  v1::GenerateResponse all = Part("abc", {1, 2, 3});  // in other parts, as they happen to come
  *all.mutable_prompt_scores() = scored.prompt_scores();
  service_.Will({Says({scored, Part("b", {2})}, broken), Says({scored}, broken),
                 Says({all, Last(Part("d", {4, 5}), 5)})});
  const auto generation = Client(address_).Generate(Request());
  std::vector<std::string> texts;
  v1::GenerateResponse whole;
  for (v1::GenerateResponse response; generation->Read(&response);) {
    texts.push_back(response.text());
    whole.MergeFrom(response);
  }
  EXPECT_TRUE(generation->Finish().ok());
  EXPECT_THAT(texts, ElementsAre("a", "b", "c", "d"));
  EXPECT_THAT(Ids(whole), ElementsAre(1, 2, 3, 4, 5));
  ASSERT_EQ(whole.scores_size(), 5);
  EXPECT_EQ(whole.scores(2).log_probability(), -3);
  EXPECT_EQ(whole.prompt_scores_size(), 1);
  for (const v1::GenerateRequest& request : service_.requests()) {
    EXPECT_EQ(request.SerializeAsString(), Request().SerializeAsString());
  }
}

TEST_F(ClientTest, WithoutASeedABrokenStreamEndsInItsError) {
  v1::GenerateRequest request = Request();
  request.clear_seed();
  const Script breaks = Says({Part("a", {1})}, {grpc::StatusCode::UNAVAILABLE, "broken"});
  const Script says = Says({Part("a", {1}), Last(Part("b", {2}), 2)});
  service_.Will({breaks, says});
  EXPECT_EQ(Generate(request).text(), "a");
  EXPECT_EQ(status_.error_message(), "broken");
  // Nothing had come, or nothing is drawn, or as the state says.
  service_.Will({Refuses(grpc::StatusCode::UNAVAILABLE), says});
  EXPECT_EQ(Generate(request).text(), "ab");
  service_.Will({breaks, says});
  request.set_state("0123");
  EXPECT_EQ(Generate(request).text(), "ab");
  service_.Will({breaks, says});
  request.clear_state();
  request.set_temperature(0);
  EXPECT_EQ(Generate(request).text(), "ab");
}

TEST_F(ClientTest, AnotherAnswerToTheSameRequestIsAnError) {
  const Script breaks = Says({Part("ab", {1, 2})}, {grpc::StatusCode::UNAVAILABLE, "broken"});
  for (const v1::GenerateResponse& other :
       {Part("ax", {1, 2}), Part("ab", {1, 3}), Last(Part("a", {1}), 1)}) {
    service_.Will({breaks, Says({other, Last(Part("c", {3}), 3)})});
    EXPECT_EQ(Generate(Request()).text(), "ab");
    EXPECT_EQ(status_.error_code(), grpc::StatusCode::DATA_LOSS);
  }
}

TEST_F(ClientTest, AnAnswerThatIsCompleteNeedsNoEnd) {
  service_.Will({Says({Last(Part("a", {1}), 1)}, {grpc::StatusCode::UNAVAILABLE, "broken"})});
  EXPECT_EQ(Generate(Request()).text(), "a");
  EXPECT_TRUE(status_.ok());
  EXPECT_EQ(service_.requests().size(), 1u);
}

// ---- Servers that stop --------------------------------------------------------------------------

TEST_F(ClientTest, ATextGoesOnFromTheStateOfAStoppedServer) {
  service_.Will({Says({Part("a", {1}), Migrated(Part("b", {2}), "h1", 3, 5)}),
                 Says({Migrated(Part("", {}), "h2", 5, 5)}), Says({Last(Part("cd", {3, 4}), 2)})});
  v1::GenerateRequest request = Request();
  request.clear_seed();
  request.set_position(2);
  request.add_cache_marks(2);
  request.set_log_probabilities(0);
  const v1::GenerateResponse whole = Generate(request);
  EXPECT_TRUE(status_.ok()) << status_.error_message();
  EXPECT_EQ(whole.text(), "abcd");
  EXPECT_THAT(Ids(whole), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(whole.finish_reason(), v1::FINISH_REASON_LENGTH);
  EXPECT_FALSE(whole.has_state());
  EXPECT_EQ(whole.usage().prompt_tokens(), 3);
  EXPECT_EQ(whole.usage().completion_tokens(), 4);
  const std::vector<v1::GenerateRequest> requests = service_.requests();
  ASSERT_EQ(requests.size(), 3u);
  for (const size_t i : {1u, 2u}) {
    EXPECT_EQ(requests[i].state(), "h" + std::to_string(i));
    EXPECT_EQ(requests[i].prompt_case(), v1::GenerateRequest::PROMPT_NOT_SET);
    EXPECT_EQ(requests[i].max_tokens(), 6);
    EXPECT_FALSE(requests[i].has_position());
    EXPECT_EQ(requests[i].cache_marks_size(), 0);
    EXPECT_TRUE(requests[i].has_log_probabilities());
  }
}

TEST_F(ClientTest, WhatIsLeftOfAPromptGoesWithTheState) {
  for (const bool as_text : {true, false}) {
    service_.refusals = 1;
    service_.Will({Says({Migrated(Part("", {}), "h", 13, 11)}), Says({Last(Part("x", {1}), 1)})});
    v1::GenerateRequest request = Request();
    request.clear_max_tokens();
    if (!as_text) {
      for (const int32_t id : {'a', 'b', 'c'}) request.mutable_token_ids()->add_ids(id);
    }
    EXPECT_EQ(Generate(request).text(), "x");
    const v1::GenerateRequest rest = service_.requests().back();
    EXPECT_THAT(std::vector<int32_t>(rest.token_ids().ids().begin(), rest.token_ids().ids().end()),
                ElementsAre('b', 'c'));
    EXPECT_EQ(rest.max_tokens(), 16) << "the default";
  }
}

TEST_F(ClientTest, AStreamThatWasAheadOfTheStateSkipsInTheNextPart) {
  service_.Will({Says({Part("abcd", {1, 2, 3, 4})}, {grpc::StatusCode::UNAVAILABLE, "broken"}),
                 Says({Part("a", {1}), Migrated(Part("b", {2}), "h", 3, 5)}),
                 Says({Part("cd", {3, 4})}, {grpc::StatusCode::UNAVAILABLE, "broken"}),
                 Says({Part("cde", {3, 4, 5}), Last(Part("f", {6}), 4)})});
  const v1::GenerateResponse whole = Generate(Request());
  EXPECT_TRUE(status_.ok()) << status_.error_message();
  EXPECT_EQ(whole.text(), "abcdef");
  EXPECT_THAT(Ids(whole), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(whole.usage().completion_tokens(), 6);
  EXPECT_EQ(service_.requests().back().max_tokens(), 6);
}

TEST_F(ClientTest, AStateThatLacksMoreThanThePromptIsAnError) {
  service_.Will({Says({Migrated(Part("", {}), "h", 20, 1)})});
  Generate(Request());
  EXPECT_EQ(status_.error_code(), grpc::StatusCode::INTERNAL);
  EXPECT_EQ(service_.requests().size(), 1u);
}

// ---- Giving up ----------------------------------------------------------------------------------

TEST_F(ClientTest, WhoCancelsIsNotSentAgain) {
  std::atomic<bool> cancelled = false;
  service_.Will({[&](grpc::ServerContext* context, const v1::GenerateRequest&, Writer* writer) {
    writer->Write(Part("a", {1}));
    cancelled = WaitUntil([&] { return context->IsCancelled(); });
    return grpc::Status::CANCELLED;
  }});
  const auto generation = Client(address_).Generate(Request());
  v1::GenerateResponse response;
  ASSERT_TRUE(generation->Read(&response));
  generation->Cancel();
  EXPECT_EQ(generation->Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(WaitUntil([&] { return cancelled.load(); }));
  EXPECT_EQ(service_.requests().size(), 1u);
}

TEST_F(ClientTest, CancellingEndsAPause) {
  service_.Will({Refuses(grpc::StatusCode::UNAVAILABLE, "1800")});
  const auto generation =
      Client(address_, {.retry_time = std::chrono::hours(1)}).Generate(Request());
  std::thread cancel([&] {
    EXPECT_TRUE(WaitUntil([&] { return !service_.requests().empty(); }));
    generation->Cancel();
  });
  EXPECT_EQ(generation->Finish().error_code(), grpc::StatusCode::CANCELLED);
  cancel.join();
}

TEST_F(ClientTest, AGenerationThatGoesGivesUpItsWork) {
  std::atomic<bool> cancelled = false;
  service_.Will({[&](grpc::ServerContext* context, const v1::GenerateRequest&, Writer* writer) {
    writer->Write(Part("a", {1}));
    cancelled = WaitUntil([&] { return context->IsCancelled(); });
    return grpc::Status::CANCELLED;
  }});
  auto generation = Client(address_).Generate(Request());
  v1::GenerateResponse response;
  ASSERT_TRUE(generation->Read(&response));
  generation.reset();
  EXPECT_TRUE(WaitUntil([&] { return cancelled.load(); }));
}

// ---- Keys and certificates ----------------------------------------------------------------------

TEST_F(ClientTest, TheKeyGoesWithEachCall) {
  service_.Will({Refuses(grpc::StatusCode::UNAVAILABLE), Says({Last(Part("a", {1}), 1)})});
  Generate(Request(), {.api_key = "secret"});
  EXPECT_EQ(service_.authorization(), "Bearer secret");
  Generate(Request());
  EXPECT_EQ(service_.authorization(), "");
}

TEST_F(ClientTest, AKeyThatCannotBeSentIsAnError) {
  Generate(Request(), {.api_key = "secret\n"});
  EXPECT_EQ(status_.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(status_.error_message().find("API key"), std::string::npos);
}

TEST_F(ClientTest, ServersBehindTlsAreKnownByTheirAuthority) {
  const TestAuthority authority("authority");
  const TestAuthority other("other");
  const TestCertificate own = authority.Issue("server");
  grpc::SslServerCredentialsOptions credentials;
  credentials.pem_key_cert_pairs.push_back({own.key, own.certificate});
  server_->Shutdown();
  Listen(grpc::SslServerCredentials(credentials));
  service_.Will({Says({Last(Part("a", {1}), 1)})});
  const TemporaryDirectory directory;
  Options options{.tls = true, .ca_file = directory.Write("ca", authority.certificate())};
  options.retry_time = milliseconds(100);
  EXPECT_EQ(Generate(Request(), options).text(), "a");
  EXPECT_TRUE(status_.ok()) << status_.error_message();
  options.ca_file = directory.Write("other", other.certificate());
  Generate(Request(), options);
  EXPECT_EQ(status_.error_code(), grpc::StatusCode::UNAVAILABLE);
  options.ca_file = directory.File("none");
  Generate(Request(), options);
  EXPECT_EQ(status_.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status_.error_message(), "cannot read the authorities of " + options.ca_file);
  v1::TokenizeResponse tokens;
  EXPECT_EQ(Client(address_, options).Tokenize({}, &tokens).error_message(),
            status_.error_message());
}

// ---- Calls with one answer ----------------------------------------------------------------------

TEST_F(ClientTest, CallsWithOneAnswerAreSentAgain) {
  service_.refusals = 2;
  v1::TokenizeRequest request;
  request.set_text("ab");
  v1::TokenizeResponse tokens;
  EXPECT_TRUE(Client(address_).Tokenize(request, &tokens).ok());
  EXPECT_THAT(std::vector<int32_t>(tokens.token_ids().begin(), tokens.token_ids().end()),
              ElementsAre('a', 'b'));
  v1::ScoreResponse scores;
  EXPECT_EQ(Client(address_).Score({}, &scores).error_code(), grpc::StatusCode::UNIMPLEMENTED);
}

// ---- A real server ------------------------------------------------------------------------------

class ClientServerTest : public testing::Test {
 protected:
  ClientServerTest() {
    ServerOptions options;
    options.http.address = "127.0.0.1:0";
    options.grpc.address = "127.0.0.1:0";
    options.models = {{"m", ""}, {"e", ""}};
    std::vector<ModelParts> models;
    models.push_back(NewFakeModel("m"));
    models.push_back(NewFakeEncoderModel("e"));
    server_ = Server::Start(options, std::move(models)).value();
  }

  // A text that continues `prompt`, and its state.
  v1::GenerateResponse Generate(const std::string& prompt) {
    v1::GenerateRequest request;
    request.set_text(prompt);
    request.set_max_tokens(5);
    request.set_return_state(v1::RETURN_STATE_HANDLE);
    v1::GenerateResponse whole;
    const grpc::Status status = client().Generate(request, &whole);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return whole;
  }

  Client client() const { return Client(server_->grpc_address()); }

  std::unique_ptr<Server> server_;
};

TEST_F(ClientServerTest, DecodersAnswer) {
  const v1::GenerateResponse whole = Generate("abc");
  EXPECT_EQ(whole.text(), "abcab");
  EXPECT_EQ(whole.usage().prompt_tokens(), 3);
  v1::TokenizeRequest text;
  text.set_text("abc");
  v1::TokenizeResponse tokens;
  ASSERT_TRUE(client().Tokenize(text, &tokens).ok());
  v1::DetokenizeRequest ids;
  *ids.mutable_token_ids() = tokens.token_ids();
  v1::DetokenizeResponse again;
  ASSERT_TRUE(client().Detokenize(ids, &again).ok());
  EXPECT_EQ(again.text(), "abc");
  v1::ScoreRequest score;
  score.set_text("abc");
  score.add_continuations()->set_text("d");
  v1::ScoreResponse scores;
  EXPECT_TRUE(client().Score(score, &scores).ok());
  EXPECT_EQ(scores.scores_size(), 1);
}

TEST_F(ClientServerTest, EncodersAnswer) {
  v1::ClassifyRequest classify;
  classify.add_inputs()->set_text("paris");
  v1::ClassifyResponse classified;
  EXPECT_TRUE(client().Classify(classify, &classified).ok());
  EXPECT_EQ(classified.results_size(), 1);
  v1::EmbedRequest embed;
  embed.add_inputs()->set_text("paris");
  v1::EmbedResponse embedded;
  EXPECT_TRUE(client().Embed(embed, &embedded).ok());
  EXPECT_EQ(embedded.embeddings_size(), 1);
  // The model has another head.
  v1::TagTokensResponse tags;
  v1::FillMaskResponse masks;
  v1::AnswerQuestionResponse answers;
  v1::TagTokensRequest tag;
  tag.set_model("e");
  v1::FillMaskRequest fill;
  fill.set_model("e");
  v1::AnswerQuestionRequest answer;
  answer.set_model("e");
  for (const grpc::Status& status :
       {client().TagTokens(tag, &tags), client().FillMask(fill, &masks),
        client().AnswerQuestion(answer, &answers)}) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION) << status.error_message();
  }
}

TEST_F(ClientServerTest, ModelsAreListed) {
  v1::ListModelsResponse models;
  ASSERT_TRUE(client().ListModels(&models).ok());
  ASSERT_EQ(models.models_size(), 2);
  v1::GetModelRequest request;
  request.set_name("e");
  v1::Model model;
  EXPECT_TRUE(client().GetModel(request, &model).ok());
  EXPECT_EQ(model.SerializeAsString(), models.models(1).SerializeAsString());
  request.set_name("none");
  EXPECT_EQ(client().GetModel(request, &model).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(ClientServerTest, StatesAreKeptCopiedAndForgotten) {
  v1::GetStateRequest get;
  get.set_handle(Generate("abc").state().handle());
  std::string file;
  ASSERT_TRUE(client().GetState(get, &file).ok());
  EXPECT_GT(file.size(), 100u);
  v1::PutStateRequest put;
  put.set_handle(std::string(32, 'a'));
  put.set_state_ttl(60);
  put.set_data(file);
  v1::State state;
  const grpc::Status kept = client().PutState(put, &state);
  ASSERT_TRUE(kept.ok()) << kept.error_message();
  EXPECT_EQ(state.handle(), put.handle());
  v1::ForkStateRequest fork;
  fork.set_handle(put.handle());
  fork.set_n(2);
  v1::ForkStateResponse copies;
  ASSERT_TRUE(client().ForkState(fork, &copies).ok());
  EXPECT_EQ(copies.handles_size(), 2);
  v1::ListStatesResponse states;
  ASSERT_TRUE(client().ListStates(&states).ok());
  EXPECT_EQ(states.states_size(), 4);
  v1::DeleteStateRequest forget;
  forget.set_handle(put.handle());
  EXPECT_TRUE(client().DeleteState(forget).ok());
  EXPECT_EQ(client().DeleteState(forget).error_code(), grpc::StatusCode::NOT_FOUND);
  get.set_handle(copies.handles(1));
  std::string copy;
  EXPECT_TRUE(client().GetState(get, &copy).ok());
  EXPECT_EQ(copy, file);
}

TEST_F(ClientServerTest, TheExampleWritesAText) {
  const std::string command =
      std::string(HIPPODROME_EXAMPLE) + " " + server_->grpc_address() + " abc";
  FILE* const pipe = popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string text;
  for (int c = 0; (c = std::fgetc(pipe)) != EOF;) text += static_cast<char>(c);
  EXPECT_EQ(pclose(pipe), 0);
  EXPECT_EQ(text, "abcabcabcabcabcabcabcabcabcabcabcabcabca\n");
}

// One of several servers with one store of states.
class Replica {
 public:
  Replica(const std::string& address, const std::string& store) {
    std::vector<std::unique_ptr<ServedModel>> models;
    models.push_back(NewServedModel(NewFakeModel("m", {}, &engine_), metrics_));
    StateOptions states;
    states.store = store;
    handlers_ = std::make_unique<Handlers>(std::move(models), RequestLimits(), states);
    handlers_->states().SetStore(
        OpenStateStore(states.store, states.store_bytes, state_metrics_).value());
    GrpcOptions options;
    options.address = address;
    server_ = GrpcServer::Start(options, *handlers_, metrics_, access_).value();
  }

  FakeEngine& engine() { return *engine_; }
  const std::string& address() const { return server_->address(); }
  void Stop() {
    handlers_->Close();
    handlers_->Migrate();
    EXPECT_TRUE(WaitUntil([&] { return handlers_->pending() == 0; }));
    server_->Stop(std::chrono::minutes(1));
  }

 private:
  Metrics metrics_;
  StateStoreMetrics state_metrics_{metrics_.registry()};
  const AccessControl access_{"", metrics_};
  FakeEngine* engine_ = nullptr;
  std::unique_ptr<Handlers> handlers_;
  std::unique_ptr<GrpcServer> server_;
};

TEST(ClientReplicasTest, ATextGoesOnInTheNextServerAtTheSameAddress) {
  const TemporaryDirectory store;
  auto replica = std::make_unique<Replica>("127.0.0.1:0", store.path());
  replica->engine().hold_decode = true;  // behind the first token
  const std::string address = replica->address();
  v1::GenerateRequest request;
  request.set_text("aaa");
  request.set_max_tokens(30);
  const auto generation = Client(address).Generate(request);
  v1::GenerateResponse response;
  ASSERT_TRUE(generation->Read(&response));
  std::string text = response.text();
  replica->Stop();
  replica.reset();
  replica = std::make_unique<Replica>(address, store.path());
  while (generation->Read(&response)) text += response.text();
  EXPECT_TRUE(generation->Finish().ok()) << generation->Finish().error_message();
  EXPECT_EQ(text, std::string(30, 'a'));
  EXPECT_EQ(response.usage().prompt_tokens(), 3);
  EXPECT_EQ(response.usage().completion_tokens(), 30);
  EXPECT_EQ(replica->engine().steps, 28) << "all but the first token of each server";
}

}  // namespace
}  // namespace hippodrome::client_test
