#include "server/batching/generation_batcher.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/testing/batcher_fixture.h"

namespace hippodrome::generation_batcher_queue_test {
namespace {

using GenerationBatcherQueueTest = BatcherFixture;

TEST_F(GenerationBatcherQueueTest, WhatNeverFitsIsRefusedAtOnceWithTheNumbers) {
  Start({.slots = 4, .pages = 4});
  const auto generation = batcher_->Submit(Call("abc", 1000));
  EXPECT_EQ(generation.status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_NE(Message(generation.status()).find("needs 63 pages"), std::string::npos);
  EXPECT_TRUE(
      MetricsSay("hippodrome_admission_rejected_total{model=\"m\",reason=\"never_fits\"} 1"));
  EXPECT_EQ(batcher_->pending(), 0);
}

TEST_F(GenerationBatcherQueueTest, AFullQueueRefusesUntilThereIsRoom) {
  BatcherOptions options;
  options.max_queue = 2;
  options.max_client_share = 1;
  Start({.slots = 1}, options);
  engine_->hold_prefill = true;
  const auto running = Submit(Call("a", 2));
  ASSERT_TRUE(WaitUntil([&] { return engine_->used_slots == 1; }));
  const auto second = Submit(Call("b", 2));
  const auto third = Submit(Call("c", 2));
  const auto refused = batcher_->Submit(Call("d", 2));
  EXPECT_TRUE(absl::IsResourceExhausted(refused.status()));
  engine_->hold_prefill = false;
  EXPECT_EQ(Collect(*running).text, "aa");
  EXPECT_EQ(Collect(*third).text, "cc");
  EXPECT_EQ(Collect(*Submit(Call("e", 2))).text, "ee");
}

TEST_F(GenerationBatcherQueueTest, WaitingPromptsAreBoundedInTokens) {
  BatcherOptions options;
  options.max_queued_tokens = 10;
  options.max_client_share = 1;
  Start({.slots = 1}, options);
  engine_->hold_prefill = true;
  const auto running = Submit(Call("a", 2));
  ASSERT_TRUE(WaitUntil([&] { return engine_->used_slots == 1; }));
  const auto waiting = Submit(Call("0123456", 2));
  EXPECT_TRUE(absl::IsResourceExhausted(batcher_->Submit(Call("0123", 2)).status()));
  EXPECT_TRUE(batcher_->Submit(Call("012", 2)).ok());
}

TEST_F(GenerationBatcherQueueTest, AClientThatFillsTheQueueLeavesRoomForOthers) {
  BatcherOptions options;
  options.max_queue = 8;
  Start({.slots = 1}, options);
  engine_->hold_prefill = true;
  const auto from = [](const std::string& client) {
    GenerationCall call = Call("a", 2);
    call.caller.client = client;
    return call;
  };
  const auto running = Submit(from("greedy"));
  ASSERT_TRUE(WaitUntil([&] { return engine_->used_slots == 1; }));
  std::vector<std::unique_ptr<Generation>> waiting;
  for (int i = 0; i < 6; ++i) waiting.push_back(Submit(from("greedy")));
  const auto refused = batcher_->Submit(from("greedy"));
  EXPECT_TRUE(absl::IsResourceExhausted(refused.status()));
  EXPECT_NE(Message(refused.status()).find("client's share"), std::string::npos);
  EXPECT_TRUE(
      MetricsSay("hippodrome_admission_rejected_total{model=\"m\",reason=\"client_share\"} 1"));
  const auto polite = Submit(from("polite"));
  waiting.pop_back();
  waiting.pop_back();
  ASSERT_TRUE(WaitUntil([&] { return batcher_->pending() == 6; }));
  waiting.push_back(Submit(from("greedy")));
  engine_->hold_prefill = false;
  EXPECT_EQ(Collect(*polite).text, "aa");
  EXPECT_EQ(Collect(*waiting.back()).text, "aa");
}

TEST_F(GenerationBatcherQueueTest, CancellingInTheQueueFreesThePlace) {
  BatcherOptions options;
  options.max_queue = 1;
  Start({.slots = 1}, options);
  engine_->hold_decode = true;
  const auto running = Submit(Call("a", 2));
  ASSERT_TRUE(WaitUntil([&] { return engine_->used_slots == 1; }));
  auto waiting = Submit(Call("b", 2));
  waiting.reset();
  EXPECT_TRUE(WaitUntil([&] { return batcher_->pending() == 1; }));
  EXPECT_TRUE(MetricsSay("hippodrome_cancelled_total{model=\"m\",where=\"queue\"} 1"));
  EXPECT_TRUE(batcher_->Submit(Call("c", 2)).ok());
  engine_->hold_decode = false;
  EXPECT_EQ(Collect(*running).text, "aa");
}

TEST_F(GenerationBatcherQueueTest, CancellingInPrefillFreesEverything) {
  Start();
  engine_->hold_prefill = true;
  auto generation = Submit(Call("abc", 5));
  ASSERT_TRUE(WaitUntil([&] { return engine_->used_slots == 1; }));
  generation.reset();
  EXPECT_TRUE(AllFree());
  EXPECT_TRUE(MetricsSay("hippodrome_cancelled_total{model=\"m\",where=\"prefill\"} 1"));
}

TEST_F(GenerationBatcherQueueTest, CancellingInDecodeFreesEverythingAndHurtsNobody) {
  Start();
  engine_->hold_decode = true;
  const auto other = Submit(Call("xyz", 10));
  auto generation = Submit(Call("abc", 5));
  ASSERT_TRUE(WaitUntil([&] { return generation->Take().has_value(); }));
  generation.reset();
  EXPECT_TRUE(WaitUntil([&] { return engine_->used_slots == 1; }));
  EXPECT_TRUE(MetricsSay("hippodrome_cancelled_total{model=\"m\",where=\"decode\"} 1"));
  engine_->hold_decode = false;
  EXPECT_EQ(Collect(*other).text, "xyzxyzxyzx");
  EXPECT_TRUE(AllFree());
  EXPECT_TRUE(WaitUntil([&] {
    return MetricsSay("hippodrome_state_bytes{model=\"m\",kind=\"recurrent\"} 0") ||
           MetricsSay("hippodrome_state_bytes{kind=\"recurrent\",model=\"m\"} 0");
  }));
}

TEST_F(GenerationBatcherQueueTest, RandomCancellationsLeaveNothingBehind) {
  Start({.slots = 3, .pages = 16});
  std::mt19937 random(3);
  std::vector<std::unique_ptr<Generation>> all;
  for (int i = 0; i < 2000; ++i) {
    auto generation = batcher_->Submit(Call("abcdefg", 1 + static_cast<int64_t>(random() % 50)));
    if (generation.ok()) all.push_back(*std::move(generation));
    if (!all.empty() && random() % 2 == 0) {
      std::swap(all[random() % all.size()], all.back());
      all.pop_back();
    }
  }
  all.clear();
  EXPECT_TRUE(AllFree());
}

TEST_F(GenerationBatcherQueueTest, WhoWaitsForPagesDoesNotBlockThoseThatFit) {
  Start({.slots = 4, .pages = 64});
  engine_->hold_decode = true;
  const auto large = Submit(Call("a", 600));
  ASSERT_TRUE(WaitUntil([&] { return engine_->used_slots == 1; }));
  const auto second = Submit(Call("b", 600));
  const auto small = Submit(Call("xy", 50));
  EXPECT_TRUE(WaitUntil([&] { return engine_->used_slots == 2; }));
  EXPECT_EQ(engine_->used_pages, 38 + 4);
  engine_->hold_decode = false;
  EXPECT_EQ(Collect(*small).text, Repeat("xy", 50));
  EXPECT_EQ(Collect(*second).text, Repeat("b", 600));
  EXPECT_EQ(Collect(*large).text, Repeat("a", 600));
  EXPECT_TRUE(AllFree());
}

TEST_F(GenerationBatcherQueueTest, ClientsTakeTurnsAndCallsOfManyPromptsCountAsOne) {
  Start({.slots = 1});
  engine_->hold_decode = true;
  const auto running = Submit(Call("r", 2));
  ASSERT_TRUE(WaitUntil([&] { return engine_->used_slots == 1; }));
  std::vector<std::unique_ptr<Generation>> all;
  const auto submit = [&](const std::string& prompt, const Caller& caller) {
    GenerationCall call = Call(prompt, 2);
    call.caller = caller;
    all.push_back(Submit(std::move(call)));
  };
  const Caller batch(Api::kHttp, "a");
  for (const char* prompt : {"1", "2", "3"}) submit(prompt, batch);
  submit("4", Caller(Api::kHttp, "a"));
  submit("5", Caller(Api::kHttp, "b"));
  engine_->hold_decode = false;
  for (const auto& generation : all) Collect(*generation);
  EXPECT_EQ(engine_->admitted(), "r15423");
}

// `call`, for which nobody waits.
GenerationCall InBackground(GenerationCall call) {
  call.caller.background = true;
  return call;
}

TEST_F(GenerationBatcherQueueTest, TheBackgroundStartsBehindAllOthers) {
  Start({.slots = 1});
  engine_->hold_decode = true;
  const auto running = Submit(Call("r", 2));
  ASSERT_TRUE(WaitUntil([&] { return engine_->used_slots == 1; }));
  std::vector<std::unique_ptr<Generation>> all;
  for (const char* prompt : {"1", "2"}) all.push_back(Submit(InBackground(Call(prompt, 2))));
  for (const char* prompt : {"3", "4"}) all.push_back(Submit(Call(prompt, 2)));
  EXPECT_TRUE(WaitUntil([&] { return MetricsSay("hippodrome_requests_queued{model=\"m\"} 2"); }));
  EXPECT_TRUE(MetricsSay("hippodrome_background_requests_queued{model=\"m\"} 2"));
  engine_->hold_decode = false;
  for (const auto& generation : all) Collect(*generation);
  EXPECT_EQ(engine_->admitted(), "r3412");
  // Nobody waited for the others.
  EXPECT_TRUE(MetricsSay("hippodrome_queue_duration_seconds_count{api=\"http\",model=\"m\"} 3"));
  EXPECT_TRUE(
      MetricsSay("hippodrome_time_to_first_token_seconds_count{api=\"http\",model=\"m\"} 3"));
  EXPECT_TRUE(MetricsSay("hippodrome_prefill_duration_seconds_count{api=\"http\",model=\"m\"} 5"));
}

TEST_F(GenerationBatcherQueueTest, TheBackgroundLeavesHalfOfTheSlots) {
  Start({.slots = 4});
  engine_->hold_decode = true;
  std::vector<std::unique_ptr<Generation>> all;
  for (const char* prompt : {"1", "2", "3"}) all.push_back(Submit(InBackground(Call(prompt, 2))));
  ASSERT_TRUE(WaitUntil([&] { return engine_->used_slots == 2; }));
  const auto other = Submit(Call("4", 2));
  EXPECT_TRUE(WaitUntil([&] { return engine_->used_slots == 3; }));
  EXPECT_TRUE(MetricsSay("hippodrome_background_requests_queued{model=\"m\"} 1"));
  engine_->hold_decode = false;
  for (const auto& generation : all) Collect(*generation);
  EXPECT_EQ(Collect(*other).text, "44");
  EXPECT_EQ(engine_->admitted(), "1243");
}

TEST_F(GenerationBatcherQueueTest, TheBackgroundLeavesHalfOfTheQueue) {
  BatcherOptions options;
  options.max_queue = 8;
  options.max_client_share = 1;
  Start({.slots = 1}, options);
  engine_->hold_prefill = true;
  const auto running = Submit(Call("a", 2));
  ASSERT_TRUE(WaitUntil([&] { return engine_->used_slots == 1; }));
  std::vector<std::unique_ptr<Generation>> waiting;
  for (int i = 0; i < 4; ++i) waiting.push_back(Submit(InBackground(Call("b", 2))));
  const auto refused = batcher_->Submit(InBackground(Call("b", 2)));
  EXPECT_TRUE(absl::IsResourceExhausted(refused.status()));
  EXPECT_NE(Message(refused.status()).find("the background's share of the queue is full"),
            std::string::npos);
  EXPECT_TRUE(
      MetricsSay("hippodrome_admission_rejected_total{model=\"m\",reason=\"background_share\"} 1"));
  for (int i = 0; i < 4; ++i) waiting.push_back(Submit(Call("c", 2)));
  EXPECT_TRUE(absl::IsResourceExhausted(batcher_->Submit(Call("c", 2)).status()));
  waiting.clear();
  ASSERT_TRUE(WaitUntil([&] { return batcher_->pending() == 1; }));
  EXPECT_TRUE(batcher_->Submit(InBackground(Call("b", 2))).ok());
}

TEST_F(GenerationBatcherQueueTest, TheBackgroundLeavesRoomForLogProbabilities) {
  BatcherOptions options;
  options.max_score_bytes = 1;  // one request always may
  Start({.slots = 4}, options);
  engine_->hold_decode = true;
  const auto scored = [] {
    GenerationCall call = Call("a", 2);
    call.request.likeliest = 0;
    return call;
  };
  auto first = Submit(InBackground(scored()));
  EXPECT_TRUE(absl::IsResourceExhausted(batcher_->Submit(InBackground(scored())).status()));
  first.reset();
  EXPECT_TRUE(batcher_->Submit(InBackground(scored())).ok());
}

TEST_F(GenerationBatcherQueueTest, TheBackgroundWaitsForAsLongAsItTakesButNotBeyondItsDeadline) {
  BatcherOptions options;
  options.max_wait = std::chrono::milliseconds(1);
  Start({.slots = 1}, options);
  engine_->hold_decode = true;
  const auto running = Submit(Call("ab", 3));
  ASSERT_TRUE(WaitUntil([&] { return engine_->used_slots == 1; }));
  const auto waiting = Submit(InBackground(Call("cd", 3)));
  GenerationCall late = InBackground(Call("ef", 3));
  late.caller.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(2);
  const auto expired = Submit(std::move(late));
  const auto other = Submit(Call("gh", 3));
  EXPECT_TRUE(absl::IsResourceExhausted(Collect(*other).status));
  EXPECT_TRUE(absl::IsDeadlineExceeded(Collect(*expired).status));
  EXPECT_EQ(batcher_->pending(), 2);
  engine_->hold_decode = false;
  EXPECT_EQ(Collect(*waiting).text, "cdc");
}

TEST_F(GenerationBatcherQueueTest, WhoHasWaitedForTooLongIsTold) {
  BatcherOptions options;
  options.max_wait = std::chrono::milliseconds(1);
  Start({.slots = 1}, options);
  engine_->hold_decode = true;
  const auto running = Submit(Call("ab", 3));
  ASSERT_TRUE(WaitUntil([&] { return engine_->used_slots == 1; }));
  const auto waiting = Submit(Call("cd", 3));
  const absl::Status status = Collect(*waiting).status;
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_NE(Message(status).find("too busy"), std::string::npos);
  EXPECT_TRUE(MetricsSay("hippodrome_admission_rejected_total{model=\"m\",reason=\"max_wait\"} 1"));
  EXPECT_EQ(batcher_->pending(), 1);
  engine_->hold_decode = false;
  EXPECT_EQ(Collect(*running).text, "aba");
}

TEST_F(GenerationBatcherQueueTest, AfterItsDeadlineNothingStarts) {
  Start();
  GenerationCall call = Call("cd", 3);
  call.caller.deadline = std::chrono::steady_clock::now() - std::chrono::seconds(1);
  const auto generation = Submit(std::move(call));
  EXPECT_EQ(Collect(*generation).status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(AllFree());
  EXPECT_EQ(engine_->admitted(), "");
}

TEST_F(GenerationBatcherQueueTest, AClientsDeadlineEndsItsRequestWhereverItIs) {
  Start({.slots = 1});
  engine_->hold_decode = true;
  for (const bool runs : {false, true}) {
    const auto first = runs ? nullptr : Submit(Call("ab", 3));
    ASSERT_TRUE(runs || WaitUntil([&] { return engine_->used_slots == 1; }));
    GenerationCall call = Call("cd", 3);
    call.caller.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
    const auto generation = Submit(std::move(call));
    const StreamUpdate end = Collect(*generation);
    EXPECT_EQ(end.status.code(), absl::StatusCode::kDeadlineExceeded) << end.status;
  }
  EXPECT_TRUE(AllFree());
}

TEST_F(GenerationBatcherQueueTest, AfterADeadlineOneStepIsMadeAtMost) {
  Start({.pages = 1 << 20});
  engine_->slow = true;
  for (int i = 0; i < 20; ++i) {
    GenerationCall call = Call("ab", 1 << 20);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(1 + i);
    call.caller.deadline = deadline;
    const auto generation = Submit(std::move(call));
    std::this_thread::sleep_until(deadline);
    // The one that was under way ends, or has ended.
    const int64_t steps = engine_->steps;
    ASSERT_TRUE(AllFree());
    EXPECT_LE(engine_->steps - steps, 1);
    EXPECT_EQ(Collect(*generation).status.code(), absl::StatusCode::kDeadlineExceeded);
  }
}

}  // namespace
}  // namespace hippodrome::generation_batcher_queue_test
