#include "tools/load/load_client.h"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/server.h"
#include "tests/testing/fake_model.h"
#include "tests/testing/http_client.h"
#include "tests/testing/scripted_server.h"
#include "tests/testing/wait_until.h"
#include "tools/client/metrics_text.h"
#include "tools/load/load_figures.h"
#include "tools/load/load_runner.h"
#include "tools/load/prompts.h"

namespace hippodrome::load_client_test {
namespace {

using Reply = ScriptedServer::Reply;

enum class Protocol : uint8_t { kHttp, kGrpc };

LoadRun RunOn(const LoadTarget& target, Protocol protocol, const LoadPlan& plan,
              const PromptOptions& options) {
  boost::asio::io_context context(1);
  const auto client = protocol == Protocol::kHttp ? MakeHttpLoadClient(context, target)
                                                  : MakeGrpcLoadClient(context, target);
  return RunLoad(context, **client, Prompts(options), plan, [](double) {});
}

// A real server with fake engines.
class LoadClientTest : public testing::TestWithParam<Protocol> {
 protected:
  LoadClientTest() { options_.http.address = options_.grpc.address = "127.0.0.1:0"; }

  void Start() {
    std::vector<ModelParts> models;
    models.push_back(NewFakeModel("m", {}, &engine_));
    models.push_back(NewFakeEncoderModel("e"));
    server_ = Server::Start(options_, std::move(models)).value();
  }

  LoadTarget Target() const {
    return {.address =
                GetParam() == Protocol::kHttp ? server_->http_address() : server_->grpc_address()};
  }

  LoadRun RunPlan(const LoadPlan& plan,
                  const PromptOptions& prompts = {.prompt = {4, 4}, .max_tokens = {6, 6}}) {
    LoadTarget target = Target();
    target.task = prompts.task;
    return RunOn(target, GetParam(), plan, prompts);
  }

  ServerOptions options_;
  FakeEngine* engine_ = nullptr;
  std::unique_ptr<Server> server_;
};

TEST_P(LoadClientTest, CountsEveryToken) {
  Start();
  const LoadRun run = RunPlan({.concurrency = 3, .requests = 20});
  ASSERT_EQ(run.records.size(), 20);
  for (const LoadRecord& record : run.records) {
    EXPECT_EQ(record.outcome, LoadOutcome::kAnswered) << record.message;
    EXPECT_EQ(record.code, GetParam() == Protocol::kHttp ? "200" : "OK");
    EXPECT_EQ(record.prompt_tokens, 4);
    EXPECT_EQ(record.new_tokens, 6);
    int64_t tokens = 0;
    LoadClock::time_point last = record.sent;
    for (const TokenArrival& arrival : record.arrivals) {
      tokens += arrival.tokens;
      EXPECT_GE(arrival.time, last);
      last = arrival.time;
    }
    EXPECT_EQ(tokens, 6);
    EXPECT_GE(record.end, last);
    EXPECT_GE(record.sent, record.intended);
  }
}

TEST_P(LoadClientTest, ArrivalsComeInAnOpenLoop) {
  Start();
  const LoadRun run = RunPlan({.rate = 2000, .requests = 200});
  const LoadFigures figures = FiguresOf(run, {});
  EXPECT_EQ(figures.answered, 200);
  for (size_t i = 1; i < run.records.size(); ++i) {
    EXPECT_GE(run.records[i].intended, run.records[i - 1].intended);
    EXPECT_GE(run.records[i].sent, run.records[i].intended);
  }
}

TEST_P(LoadClientTest, EncodersAnswerWithoutTokens) {
  Start();
  const LoadRun run =
      RunPlan({.concurrency = 2, .requests = 6}, {.task = LoadTask::kPredict, .prompt = {3, 3}});
  for (const LoadRecord& record : run.records) {
    EXPECT_EQ(record.outcome, LoadOutcome::kAnswered) << record.message;
    EXPECT_TRUE(record.arrivals.empty());
  }
}

TEST_P(LoadClientTest, RefusalsAreCountedApart) {
  options_.batcher.max_queue = 1;
  Start();
  engine_->hold_decode = true;  // the slots fill, one waits, others are refused
  std::thread release([this] {
    EXPECT_TRUE(WaitUntil([this] {
      const std::string text = HttpClient(server_->http_address()).Get("/metrics").body;
      return MetricsText::Parse(text)->Sum("hippodrome_admission_rejected_total").value_or(0) > 0;
    }));
    engine_->hold_decode = false;
  });
  const LoadRun run = RunPlan({.concurrency = 32, .requests = 32});
  release.join();
  const LoadFigures figures = FiguresOf(run, {});
  EXPECT_GE(figures.refused, 1);
  EXPECT_EQ(figures.answered + figures.refused, 32);
  const std::string code = GetParam() == Protocol::kHttp ? "429" : "RESOURCE_EXHAUSTED";
  EXPECT_EQ(figures.codes.at(code), figures.refused);
  for (const LoadRecord& record : run.records) {
    if (record.outcome == LoadOutcome::kRefused) {
      EXPECT_GE(record.retry_after, 1);
    }
  }
}

TEST_P(LoadClientTest, WrongRequestsFail) {
  Start();
  LoadTarget target = Target();
  target.model = "nobody";
  const LoadRun run = RunOn(target, GetParam(), {.concurrency = 1, .requests = 1}, {});
  EXPECT_EQ(run.records[0].outcome, LoadOutcome::kFailed);
  EXPECT_EQ(run.records[0].code, GetParam() == Protocol::kHttp ? "404" : "NOT_FOUND");
  EXPECT_NE(run.records[0].message.find("nobody"), std::string::npos);
}

TEST_P(LoadClientTest, AServerThatIsGone) {
  Start();
  const LoadTarget target = Target();
  server_.reset();
  const LoadRun run = RunOn(target, GetParam(), {.concurrency = 2, .requests = 3}, {});
  for (const LoadRecord& record : run.records) {
    EXPECT_EQ(record.outcome, LoadOutcome::kFailed);
    EXPECT_EQ(record.code, GetParam() == Protocol::kHttp ? "connect" : "UNAVAILABLE");
  }
}

TEST_P(LoadClientTest, TimeRunsOut) {
  Start();
  engine_->hold_decode = true;
  LoadTarget target = Target();
  target.timeout = std::chrono::seconds(1);
  const LoadRun run = RunOn(target, GetParam(), {.concurrency = 1, .requests = 1},
                            {.prompt = {4, 4}, .max_tokens = {6, 6}});
  EXPECT_EQ(run.records[0].outcome, LoadOutcome::kFailed);
  EXPECT_EQ(run.records[0].code, GetParam() == Protocol::kHttp ? "timeout" : "DEADLINE_EXCEEDED");
  engine_->hold_decode = false;
}

INSTANTIATE_TEST_SUITE_P(Protocols, LoadClientTest,
                         testing::Values(Protocol::kHttp, Protocol::kGrpc), [](const auto& info) {
                           return info.param == Protocol::kHttp ? "Http" : "Grpc";
                         });

std::string Chunked(const std::string& events) {
  char size[16];
  std::snprintf(size, sizeof(size), "%zx\r\n", events.size());
  return "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + (size + events) + "\r\n";
}

constexpr char kToken[] = R"(data: {"choices":[{"text":"\"token_ids\":[1,2]","token_ids":[7]}]}

)";
constexpr char kTwoTokens[] = R"(data: {"choices":[{"text":"ab","token_ids":[7,8]}]}

)";
constexpr char kUsage[] =
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":3}}\n\n";
constexpr char kDone[] = "data: [DONE]\n\n";

LoadRecord Answered(const std::string& stream) {
  ScriptedServer server(
      [&](int, const std::string&) -> Reply { return {.pieces = {stream}, .close = true}; });
  return RunOn({.address = server.address()}, Protocol::kHttp, {.concurrency = 1, .requests = 1},
               {})
      .records[0];
}

TEST(HttpLoadClientTest, CountsTokensOfEvents) {
  const LoadRecord record = Answered(
      Chunked(std::string(": waiting\n\n") + kToken + kTwoTokens + kUsage + kDone) + "0\r\n\r\n");
  EXPECT_EQ(record.outcome, LoadOutcome::kAnswered) << record.message;
  ASSERT_EQ(record.arrivals.size(), 2);
  EXPECT_EQ(record.arrivals[0].tokens, 1);
  EXPECT_EQ(record.arrivals[1].tokens, 2);
  EXPECT_EQ(record.prompt_tokens, 5);
  EXPECT_EQ(record.new_tokens, 3);
}

TEST(HttpLoadClientTest, BrokenStreamsAreNoAnswers) {
  const std::pair<std::string, const char*> cases[] = {
      {Chunked(kToken), "broken"},                                        // the connection ends
      {Chunked(kToken) + "0\r\n\r\n", "broken"},                          // without [DONE]
      {Chunked(std::string(kToken) + kDone) + "0\r\n\r\n", "malformed"},  // without usage
      {Chunked(std::string(kToken) + "data: {\"error\":{\"message\":\"x\"}}\n\n") + "0\r\n\r\n",
       "stream_error"},
      {Chunked(kToken) + "junk\r\n", "malformed"},
      {"HTTP/1.1 500 No\r\nContent-Length: 4\r\n\r\noops", "500"}};
  for (const auto& [stream, code] : cases) {
    const LoadRecord record = Answered(stream);
    EXPECT_EQ(record.outcome, LoadOutcome::kFailed) << stream;
    EXPECT_EQ(record.code, code) << stream;
    EXPECT_FALSE(record.message.empty()) << stream;
  }
}

TEST(HttpLoadClientTest, RefusedRequestsAreSentAgain) {
  std::vector<std::string> requests;
  LoadRun run;
  {
    ScriptedServer server([&](int number, const std::string& request) -> Reply {
      requests.push_back(request);
      if (number < 2) return {.pieces = {"HTTP/1.1 429 No\r\nContent-Length: 0\r\n\r\n"}};
      return {.pieces = {Chunked(std::string(kToken) + kUsage + kDone) + "0\r\n\r\n"}};
    });
    run = RunOn({.address = server.address(), .security = {.api_key = "sk-2"}}, Protocol::kHttp,
                {.concurrency = 1, .requests = 1, .retries = 2}, {});
  }
  ASSERT_EQ(requests.size(), 3);
  EXPECT_EQ(requests[0], requests[2]);
  EXPECT_NE(requests[0].find("Authorization: Bearer sk-2\r\n"), std::string::npos);
  EXPECT_EQ(run.retried, 2);
  EXPECT_EQ(run.records[0].outcome, LoadOutcome::kAnswered);
  EXPECT_EQ(run.records[0].arrivals.size(), 1);
}

}  // namespace
}  // namespace hippodrome::load_client_test
