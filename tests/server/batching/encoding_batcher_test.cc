#include "server/batching/encoding_batcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "tests/testing/fake_encoder.h"
#include "tests/testing/wait_until.h"

namespace hippodrome::encoding_batcher_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// An input of so many tokens that starts with `first`.
EncoderRequest Input(int64_t tokens, int32_t first = 5) {
  EncoderRequest request;
  for (int64_t i = 0; i < tokens; ++i) {
    request.ids.push_back(static_cast<int32_t>((first + i) % 100));
  }
  return request;
}

class EncodingBatcherTest : public testing::Test {
 protected:
  void Start(const EncodingOptions& options = {}, const FakeEncoderOptions& engine = {}) {
    engine_ = std::make_unique<FakeEncoder>(engine);
    batcher_ = std::make_unique<EncodingBatcher>(*engine_, options, model_);
  }

  // Holds the engine with an input of so many tokens.
  std::unique_ptr<Encoding> Occupy(int64_t tokens = 30) {
    engine_->hold = true;
    auto encoding = Submit({Input(tokens)});
    EXPECT_TRUE(WaitUntil([&] { return engine_->runs > 0; }));
    return encoding;
  }

  std::unique_ptr<Encoding> Submit(std::vector<EncoderRequest> requests) {
    auto encoding = batcher_->Submit({std::move(requests)});
    EXPECT_TRUE(encoding.ok()) << encoding.status();
    return *std::move(encoding);
  }

  static EncodingCall InBackground(std::vector<EncoderRequest> requests) {
    EncodingCall call{std::move(requests)};
    call.caller.background = true;
    return call;
  }
  std::unique_ptr<Encoding> SubmitInBackground(std::vector<EncoderRequest> requests) {
    auto encoding = batcher_->Submit(InBackground(std::move(requests)));
    EXPECT_TRUE(encoding.ok()) << encoding.status();
    return *std::move(encoding);
  }

  static absl::StatusOr<std::vector<EncoderOutput>> Await(Encoding& encoding) {
    std::optional<absl::StatusOr<std::vector<EncoderOutput>>> outputs;
    if (!WaitUntil([&] { return (outputs = encoding.Take()).has_value(); })) {
      return absl::DeadlineExceededError("nothing came");
    }
    return *std::move(outputs);
  }

  // The outputs are those of exactly these requests.
  void ExpectAnswers(Encoding& encoding, const std::vector<EncoderRequest>& requests) {
    const auto outputs = Await(encoding);
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    ASSERT_EQ(outputs->size(), requests.size());
    for (size_t i = 0; i < requests.size(); ++i) {
      EXPECT_EQ((*outputs)[i].values, engine_->Output(requests[i]).values);
    }
  }

  bool Idle() {
    return WaitUntil([&] { return batcher_->pending() == 0; });
  }

  bool MetricsSay(const std::string& line) {
    return metrics_.Text().find(line + "\n") != std::string::npos;
  }

  Metrics metrics_;
  EncoderMetrics model_{metrics_.registry(), "m"};
  std::unique_ptr<FakeEncoder> engine_;
  std::unique_ptr<EncodingBatcher> batcher_;
};

TEST_F(EncodingBatcherTest, ALoneInputRuns) {
  Start();
  const auto encoding = Submit({Input(10)});
  ExpectAnswers(*encoding, {Input(10)});
  EXPECT_TRUE(Idle());
  EXPECT_TRUE(MetricsSay("hippodrome_encoded_tokens_total{model=\"m\"} 10"));
  EXPECT_TRUE(MetricsSay("hippodrome_padding_tokens_total{model=\"m\"} 0"));
}

TEST_F(EncodingBatcherTest, AFullBatchDoesNotWait) {
  EncodingOptions options;
  options.max_batch_delay = std::chrono::hours(1);
  Start(options);
  const std::vector<EncoderRequest> requests(4, Input(16));
  ExpectAnswers(*Submit(requests), requests);
  EXPECT_THAT(engine_->batches(), ElementsAre(4));
}

TEST_F(EncodingBatcherTest, ACallIsSplitOverBatches) {
  Start();
  std::vector<EncoderRequest> requests;
  for (int32_t i = 0; i < 10; ++i) requests.push_back(Input(16, i));
  ExpectAnswers(*Submit(requests), requests);
  EXPECT_THAT(engine_->batches(), ElementsAre(4, 4, 2));
}

TEST_F(EncodingBatcherTest, InputsGatherWhileTheEngineIsBusy) {
  Start();
  const auto first = Occupy();
  const auto a = Submit({Input(8, 1)});
  const auto other = Submit({Input(9, 2)});
  const auto b = Submit({Input(8, 3)});
  engine_->hold = false;
  ExpectAnswers(*a, {Input(8, 1)});
  ExpectAnswers(*b, {Input(8, 3)});
  ExpectAnswers(*other, {Input(9, 2)});
  EXPECT_THAT(engine_->batches(), ElementsAre(1, 2, 1));
}

TEST_F(EncodingBatcherTest, PaddedInputsOfAllLengthsRunTogether) {
  Start({}, {.pad_to = 16});
  const auto first = Occupy(16);
  const std::vector<EncoderRequest> requests = {Input(1), Input(7), Input(16)};
  const auto encoding = Submit(requests);
  engine_->hold = false;
  ExpectAnswers(*encoding, requests);
  EXPECT_THAT(engine_->batches(), ElementsAre(1, 3));
  EXPECT_TRUE(Idle());
  EXPECT_TRUE(MetricsSay("hippodrome_encoded_tokens_total{model=\"m\"} 40"));
  EXPECT_TRUE(MetricsSay("hippodrome_padding_tokens_total{model=\"m\"} 24"));
}

TEST_F(EncodingBatcherTest, WakesItsClient) {
  Start();
  engine_->hold = true;
  const auto encoding = Submit({Input(3)});
  std::atomic<int> wakes = 0;
  encoding->OnReady([&] { ++wakes; });
  EXPECT_EQ(wakes, 0);
  engine_->hold = false;
  EXPECT_TRUE(WaitUntil([&] { return wakes == 1; }));
}

TEST_F(EncodingBatcherTest, AFullQueueRefusesAtOnce) {
  EncodingOptions options;
  options.max_queue = 3;
  options.max_client_share = 1;
  Start(options);
  const auto running = Occupy();
  const auto waiting = Submit({Input(2), Input(2)});
  const auto refused = batcher_->Submit({{Input(2), Input(2)}});
  EXPECT_TRUE(absl::IsResourceExhausted(refused.status()));
  EXPECT_THAT(Message(refused.status()), HasSubstr("2 inputs with 4 tokens wait"));
  const auto last = Submit({Input(2)});
  EXPECT_TRUE(MetricsSay("hippodrome_requests_queued{model=\"m\"} 3"));
  engine_->hold = false;
  ExpectAnswers(*last, {Input(2)});
}

TEST_F(EncodingBatcherTest, AClientThatFillsTheQueueLeavesRoomForOthers) {
  EncodingOptions options;
  options.max_queue = 8;
  Start(options);
  const auto running = Occupy();
  const auto from = [](const std::string& client, int inputs) {
    return EncodingCall{std::vector<EncoderRequest>(inputs, Input(2)), Caller(Api::kHttp, client)};
  };
  const auto first = batcher_->Submit(from("greedy", 4));
  const auto refused = batcher_->Submit(from("greedy", 3));
  EXPECT_TRUE(absl::IsResourceExhausted(refused.status()));
  EXPECT_THAT(Message(refused.status()), HasSubstr("client's share"));
  const auto second = batcher_->Submit(from("greedy", 2));
  EXPECT_TRUE(second.ok());
  const auto polite = batcher_->Submit(from("polite", 2));
  ASSERT_TRUE(polite.ok());
  EXPECT_TRUE(absl::IsResourceExhausted(batcher_->Submit(from("other", 1)).status()));
  engine_->hold = false;
  ExpectAnswers(**polite, {Input(2), Input(2)});
}

TEST_F(EncodingBatcherTest, QueuedTokensAreBounded) {
  EncodingOptions options;
  options.max_queued_tokens = 20;
  Start(options, {.pad_to = 8});
  const auto running = Occupy(1);
  const auto waiting = Submit({Input(1), Input(1)});
  EXPECT_TRUE(absl::IsResourceExhausted(batcher_->Submit({{Input(1)}}).status()));
  engine_->hold = false;
  EXPECT_TRUE(Await(*waiting).ok());
}

TEST_F(EncodingBatcherTest, WhatTheQueueCanNeverHoldIsOutOfRange) {
  EncodingOptions options;
  options.max_queue = 3;
  Start(options);
  const auto refused = batcher_->Submit({std::vector<EncoderRequest>(4, Input(2))});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(Message(refused.status()), HasSubstr("4 inputs with 8 tokens"));
  EXPECT_THAT(Message(refused.status()), HasSubstr("at most 3 inputs"));
}

TEST_F(EncodingBatcherTest, AnswersThatNobodyTakesAreBounded) {
  EncodingOptions options;
  options.max_output_bytes = 6 * sizeof(float);  // two answers of three labels
  options.max_client_share = 1;
  Start(options);
  auto first = Submit({Input(2)});
  const auto second = Submit({Input(3)});
  EXPECT_TRUE(Idle());
  EXPECT_TRUE(absl::IsResourceExhausted(batcher_->Submit({{Input(4)}}).status()));
  first.reset();
  EXPECT_TRUE(Await(*Submit({Input(4)})).ok());
}

TEST_F(EncodingBatcherTest, CancelledInputsLeaveTheQueueAtOnce) {
  EncodingOptions options;
  options.max_queue = 2;
  Start(options);
  const auto running = Occupy();
  auto cancelled = Submit({Input(2), Input(2)});
  EXPECT_EQ(batcher_->pending(), 3);
  cancelled.reset();
  EXPECT_EQ(batcher_->pending(), 1);
  const auto next = Submit({Input(4), Input(4)});
  engine_->hold = false;
  EXPECT_TRUE(Await(*next).ok());
  EXPECT_THAT(engine_->batches(), ElementsAre(1, 2));
  EXPECT_TRUE(MetricsSay("hippodrome_cancelled_total{model=\"m\",where=\"queue\"} 2"));
}

TEST_F(EncodingBatcherTest, ACallMayBeCancelledWhileItRuns) {
  Start();
  auto running = Occupy();
  running.reset();
  const auto next = Submit({Input(2)});
  engine_->hold = false;
  ExpectAnswers(*next, {Input(2)});
  EXPECT_TRUE(Idle());
}

TEST_F(EncodingBatcherTest, ClosedItFinishesWhatIsHere) {
  Start();
  const auto running = Occupy();
  const auto waiting = Submit({Input(2)});
  batcher_->Close();
  EXPECT_TRUE(absl::IsUnavailable(batcher_->Submit({{Input(2)}}).status()));
  engine_->hold = false;
  EXPECT_TRUE(Await(*running).ok());
  EXPECT_TRUE(Await(*waiting).ok());
}

TEST_F(EncodingBatcherTest, AbortEndsWhatRunsAndWhatWaits) {
  Start();
  const auto running = Occupy();
  const auto waiting = Submit({Input(2)});
  batcher_->Abort(Unavailable("enough"));
  EXPECT_TRUE(absl::IsUnavailable(Await(*running).status()));
  EXPECT_TRUE(absl::IsUnavailable(Await(*waiting).status()));
  engine_->hold = false;
  EXPECT_TRUE(Idle());
  EXPECT_TRUE(Await(*Submit({Input(2)})).ok());
}

TEST_F(EncodingBatcherTest, ABrokenDeviceEndsAllCallsAndTheHeartbeat) {
  Start();
  const auto running = Occupy();
  const auto waiting = Submit({Input(2)});
  engine_->break_device = true;
  for (Encoding* encoding : {running.get(), waiting.get()}) {
    const absl::Status status = Await(*encoding).status();
    EXPECT_TRUE(absl::IsInternal(status));
    EXPECT_EQ(Message(status), "cuda: long_conv: broken by a test");
  }
  EXPECT_TRUE(Idle());
  const auto refused = batcher_->Submit({{Input(2)}}).status();
  EXPECT_TRUE(absl::IsUnavailable(refused));
  EXPECT_THAT(Message(refused), HasSubstr("the model has failed: cuda: long_conv"));
  const auto heartbeat = batcher_->heartbeat();
  std::this_thread::sleep_for(std::chrono::milliseconds(700));  // more than an idle turn
  EXPECT_EQ(batcher_->heartbeat(), heartbeat);
}

TEST_F(EncodingBatcherTest, AnInputForWhichTheEngineThrowsFailsAlone) {
  Start({}, {.pad_to = 16});
  const auto first = Occupy(3);
  const auto good = Submit({Input(4)});
  const auto bad = Submit({Input(5)});
  engine_->too_many_tokens = 5;
  engine_->hold = false;
  ExpectAnswers(*good, {Input(4)});
  const absl::Status status = Await(*bad).status();
  EXPECT_TRUE(absl::IsInternal(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("std::bad_alloc"));
  EXPECT_TRUE(Idle());
  ExpectAnswers(*Submit({Input(6)}), {Input(6)});
}

// A call of one input beside one of many: it is in the next batch, or alone in it.
TEST_F(EncodingBatcherTest, ASmallCallWaitsForFewBatches) {
  for (const bool same_client : {true, false}) {
    for (const int64_t tokens : {16, 15}) {
      batcher_.reset();
      Start();
      const auto running = Occupy();
      const std::vector<EncoderRequest> many(1024, Input(16));
      auto large = batcher_->Submit({many, Caller(Api::kHttp, "a")});
      ASSERT_TRUE(large.ok());
      auto small =
          batcher_->Submit({{Input(tokens, 2)}, Caller(Api::kHttp, same_client ? "a" : "b")});
      ASSERT_TRUE(small.ok());
      std::atomic<int64_t> runs = 0;
      (*small)->OnReady([&] { runs = engine_->runs.load(); });
      engine_->hold = false;
      ASSERT_TRUE(WaitUntil([&] { return runs > 0; }));
      EXPECT_LE(runs, 4);
      ExpectAnswers(**small, {Input(tokens, 2)});
      ExpectAnswers(**large, many);
      EXPECT_GE(engine_->runs, 257);
      (*small)->OnReady(nullptr);
    }
  }
}

TEST_F(EncodingBatcherTest, TheBackgroundFillsWhatOthersLeave) {
  Start();
  const auto running = Occupy();
  const auto long_ones = SubmitInBackground({Input(32), Input(32), Input(32)});
  const auto short_ones = SubmitInBackground({Input(16), Input(16), Input(16), Input(16)});
  const auto other = Submit({Input(16, 2), Input(16, 3)});
  std::atomic<int64_t> runs = 0;
  other->OnReady([&] { runs = engine_->runs.load(); });
  EXPECT_TRUE(MetricsSay("hippodrome_requests_queued{model=\"m\"} 2"));
  EXPECT_TRUE(MetricsSay("hippodrome_background_requests_queued{model=\"m\"} 7"));
  engine_->hold = false;
  ExpectAnswers(*other, {Input(16, 2), Input(16, 3)});
  EXPECT_EQ(runs, 2) << "the batch behind the running one";
  EXPECT_TRUE(Await(*long_ones).ok());
  EXPECT_TRUE(Await(*short_ones).ok());
  EXPECT_THAT(engine_->batches(), ElementsAre(1, 4, 2, 2, 1));
  other->OnReady(nullptr);
  EXPECT_TRUE(Idle());
  // Nobody waited for the others.
  EXPECT_TRUE(MetricsSay("hippodrome_queue_duration_seconds_count{api=\"http\",model=\"m\"} 3"));
  EXPECT_TRUE(MetricsSay("hippodrome_request_duration_seconds_count{api=\"http\",model=\"m\"} 2"));
}

TEST_F(EncodingBatcherTest, TheBackgroundLeavesHalfOfTheQueue) {
  EncodingOptions options;
  options.max_queue = 8;
  options.max_client_share = 1;
  Start(options);
  const auto running = Occupy();
  const auto behind = SubmitInBackground({Input(2), Input(2), Input(2), Input(2)});
  const auto refused = batcher_->Submit(InBackground({Input(2)}));
  EXPECT_TRUE(absl::IsResourceExhausted(refused.status()));
  EXPECT_THAT(Message(refused.status()), HasSubstr("the background's share of the queue is full"));
  const auto others = Submit({Input(2), Input(2), Input(2), Input(2)});
  EXPECT_TRUE(absl::IsResourceExhausted(batcher_->Submit({{Input(2)}}).status()));
  engine_->hold = false;
  EXPECT_TRUE(Await(*others).ok());
  EXPECT_TRUE(Await(*behind).ok());
  EXPECT_TRUE(Await(*SubmitInBackground({Input(2)})).ok());
}

TEST_F(EncodingBatcherTest, TheBackgroundsAnswersLeaveRoomForOthers) {
  EncodingOptions options;
  options.max_output_bytes = 6 * sizeof(float);  // two answers of three labels
  options.max_client_share = 1;
  Start(options);
  const auto behind = SubmitInBackground({Input(2)});
  EXPECT_TRUE(Idle());
  EXPECT_TRUE(absl::IsResourceExhausted(batcher_->Submit(InBackground({Input(2)})).status()));
  EXPECT_TRUE(Await(*Submit({Input(4)})).ok());
}

TEST_F(EncodingBatcherTest, TheBackgroundWaitsForAsLongAsItTakes) {
  EncodingOptions options;
  options.max_wait = std::chrono::milliseconds(300);  // long enough for the first to start
  Start(options);
  const auto running = Occupy();
  const auto behind = SubmitInBackground({Input(2)});
  const auto other = Submit({Input(2)});
  std::this_thread::sleep_for(std::chrono::milliseconds(310));
  engine_->hold = false;
  EXPECT_TRUE(absl::IsResourceExhausted(Await(*other).status()));
  EXPECT_TRUE(Await(*behind).ok());
}

TEST_F(EncodingBatcherTest, CallsThatHaveWaitedForTooLongEnd) {
  EncodingOptions options;
  options.max_wait = std::chrono::milliseconds(300);  // long enough for the first to start
  Start(options);
  const auto running = Occupy();
  const auto waiting = Submit({Input(2), Input(3)});
  std::this_thread::sleep_for(std::chrono::milliseconds(310));
  engine_->hold = false;
  const absl::Status status = Await(*waiting).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_TRUE(Await(*running).ok());
  EXPECT_TRUE(Idle());
  EXPECT_TRUE(MetricsSay("hippodrome_admission_rejected_total{model=\"m\",reason=\"max_wait\"} 1"));
  EXPECT_THAT(engine_->batches(), ElementsAre(1));
}

TEST_F(EncodingBatcherTest, CallsWhoseDeadlineHasPassedEnd) {
  Start();
  const auto running = Occupy();
  const auto deadline = std::chrono::steady_clock::now() - std::chrono::seconds(1);
  auto waiting = batcher_->Submit({{Input(2)}, Caller(Api::kGrpc, "", deadline)});
  ASSERT_TRUE(waiting.ok());
  const auto next = Submit({Input(4)});
  engine_->hold = false;
  EXPECT_EQ(Await(**waiting).status().code(), absl::StatusCode::kDeadlineExceeded);
  ExpectAnswers(*next, {Input(4)});
  EXPECT_THAT(engine_->batches(), ElementsAre(1, 1));
}

TEST_F(EncodingBatcherTest, TheHeartbeatGoesOnWithoutWork) {
  Start();
  const auto heartbeat = batcher_->heartbeat();
  EXPECT_TRUE(WaitUntil([&] { return batcher_->heartbeat() > heartbeat; }));
}

TEST_F(EncodingBatcherTest, ItEndsWhileItsEngineRuns) {
  Start();
  auto running = Occupy();
  running.reset();
  std::thread end([&] { batcher_.reset(); });
  engine_->hold = false;
  end.join();
}

}  // namespace
}  // namespace hippodrome::encoding_batcher_test
