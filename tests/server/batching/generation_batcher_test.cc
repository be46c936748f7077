#include "server/batching/generation_batcher.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "engine/base/status.h"
#include "tests/testing/batcher_fixture.h"

namespace hippodrome::generation_batcher_test {
namespace {

using GenerationBatcherTest = BatcherFixture;

const std::string kDecoding = "hippodrome_requests_running{model=\"m\",phase=\"decode\"}";

TEST_F(GenerationBatcherTest, OneRequest) {
  Start();
  const auto generation = Submit(Call("abc", 7));
  const StreamUpdate all = Collect(*generation);
  EXPECT_EQ(all.text, "abcabca");
  EXPECT_EQ(all.token_ids.size(), 7u);
  EXPECT_EQ(all.finish, StreamFinish::kLength);
  EXPECT_EQ(all.prompt_tokens, 3);
  EXPECT_EQ(all.completion_tokens, 7);
  EXPECT_TRUE(AllFree());
}

// With (3 + 2) * (800 + 4 * 240) bytes of log probabilities.
constexpr int64_t kScoredBytes = 8800;
GenerationCall ScoredCall(const std::string& client) {
  GenerationCall call = Call("abc", 2);
  call.request.likeliest = 4;
  call.request.score_prompt = true;
  call.caller.client = client;
  return call;
}

TEST_F(GenerationBatcherTest, LogProbabilitiesThatNobodyTakesAreBounded) {
  BatcherOptions options;
  options.max_score_bytes = 2 * kScoredBytes + 1;
  Start({}, options);
  auto first = Submit(ScoredCall("a"));
  const auto second = Submit(ScoredCall("b"));
  EXPECT_TRUE(MetricsSay("hippodrome_log_probability_bytes{model=\"m\"} " +
                         std::to_string(2 * kScoredBytes)));
  // Also when they are ready, and taken.
  EXPECT_EQ(Collect(*first).completion_tokens, 2);
  EXPECT_TRUE(AllFree());
  const absl::Status refused = batcher_->Submit(ScoredCall("c")).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_TRUE(
      MetricsSay("hippodrome_admission_rejected_total{model=\"m\",reason=\"queue_full\"} 1"));
  // What needs none is not concerned.
  EXPECT_EQ(Collect(*Submit(Call("abc", 2))).completion_tokens, 2);
  first.reset();
  EXPECT_EQ(Collect(*Submit(ScoredCall("c"))).completion_tokens, 2);
}

TEST_F(GenerationBatcherTest, AClientHasItsShareOfTheRoomForLogProbabilities) {
  BatcherOptions options;
  options.max_score_bytes = 4 * kScoredBytes;
  Start({}, options);
  std::vector<std::unique_ptr<Generation>> own;
  for (int i = 0; i < 3; ++i) own.push_back(Submit(ScoredCall("a")));
  EXPECT_TRUE(absl::IsResourceExhausted(batcher_->Submit(ScoredCall("a")).status()));
  EXPECT_TRUE(
      MetricsSay("hippodrome_admission_rejected_total{model=\"m\",reason=\"client_share\"} 1"));
  EXPECT_EQ(Collect(*Submit(ScoredCall("b"))).completion_tokens, 2);
}

TEST_F(GenerationBatcherTest, OneRequestMayHaveMoreLogProbabilitiesThanThereIsRoomFor) {
  BatcherOptions options;
  options.max_score_bytes = 1;
  Start({}, options);
  GenerationCall call = Call("abc", 2);
  call.request.likeliest = 0;
  {
    const auto alone = Submit(call);
    EXPECT_TRUE(absl::IsResourceExhausted(batcher_->Submit(call).status()));
    EXPECT_EQ(Collect(*alone).completion_tokens, 2);
  }
  EXPECT_EQ(Collect(*Submit(call)).completion_tokens, 2);
  EXPECT_TRUE(MetricsSay("hippodrome_log_probability_bytes{model=\"m\"} 0"));
}

TEST_F(GenerationBatcherTest, TheEndOfTextTokenIsCountedButIsNoText) {
  Start();
  GenerationCall call = Call("ab", 10);
  call.request.prompt.push_back(kFakeEndOfText);
  const auto generation = Submit(call);
  const StreamUpdate all = Collect(*generation);
  EXPECT_EQ(all.text, "ab");
  EXPECT_EQ(all.token_ids, (std::vector<int32_t>{'a', 'b', kFakeEndOfText}));
  EXPECT_EQ(all.finish, StreamFinish::kEndOfText);
  EXPECT_EQ(all.completion_tokens, 3);
}

TEST_F(GenerationBatcherTest, APromptAloneEndsWithoutATokenOfItsOwn) {
  Start();
  GenerationCall call = Call("abc", 1);
  call.prompt_only = true;
  const auto generation = Submit(call);
  const StreamUpdate all = Collect(*generation);
  EXPECT_EQ(all.text, "");
  EXPECT_TRUE(all.token_ids.empty());
  EXPECT_EQ(all.finish, StreamFinish::kLength);
  EXPECT_EQ(all.prompt_tokens, 3);
  EXPECT_EQ(all.completion_tokens, 0);
  EXPECT_TRUE(AllFree());
}

TEST_F(GenerationBatcherTest, AStopStringAcrossTokensEndsTheText) {
  Start();
  const auto generation = Submit(Call("hello world", 100, {"xyz", "o w"}));
  const StreamUpdate all = Collect(*generation);
  EXPECT_EQ(all.text, "hell");
  EXPECT_EQ(all.token_ids.size(), 7u);
  EXPECT_EQ(all.finish, StreamFinish::kStopString);
  EXPECT_TRUE(AllFree());
}

TEST_F(GenerationBatcherTest, ABrokenDeviceEndsAllRequestsAndTheHeartbeat) {
  Start({.slots = 1});
  engine_->hold_decode = true;
  const auto running = Submit(Call("abc", 100));
  const auto waiting = Submit(Call("abc", 100));
  ASSERT_TRUE(WaitUntil([&] { return engine_->used_slots == 1; }));
  engine_->break_device = true;
  for (Generation* generation : {running.get(), waiting.get()}) {
    const absl::Status status = Collect(*generation).status;
    EXPECT_TRUE(absl::IsInternal(status));
    EXPECT_EQ(Message(status), "cuda: h3_step: broken by a test");
  }
  EXPECT_TRUE(WaitUntil([&] { return batcher_->pending() == 0; }));
  EXPECT_TRUE(WaitUntil([&] { return MetricsSay(kDecoding + " 0"); }));
  const auto refused = batcher_->Submit(Call("abc", 1)).status();
  EXPECT_TRUE(absl::IsUnavailable(refused));
  EXPECT_NE(Message(refused).find("the model has failed: cuda: h3_step"), std::string::npos);
  const auto heartbeat = batcher_->heartbeat();
  std::this_thread::sleep_for(std::chrono::milliseconds(700));  // more than an idle turn
  EXPECT_EQ(batcher_->heartbeat(), heartbeat);
}

TEST_F(GenerationBatcherTest, WhatTheEngineThrowsEndsWhatItWasAtWorkOnAndNothingElse) {
  for (const FakeFault fault : {FakeFault::kAdmit, FakeFault::kPrefill, FakeFault::kStep}) {
    SCOPED_TRACE(static_cast<int>(fault));
    batcher_.reset();
    Start();
    engine_->fault = fault;
    const auto failed = Submit(Call("abc", 7));
    const absl::Status status = Collect(*failed).status;
    EXPECT_TRUE(absl::IsInternal(status)) << status;
    EXPECT_NE(Message(status).find("std::bad_alloc"), std::string::npos) << status;
    EXPECT_TRUE(AllFree());
    const auto next = Submit(Call("abc", 7));
    EXPECT_EQ(Collect(*next).text, "abcabca");
    EXPECT_TRUE(AllFree());
  }
}

TEST_F(GenerationBatcherTest, APromptThatFailsDoesNotEndRunningStreams) {
  Start();
  engine_->hold_decode = true;
  const auto running = Submit(Call("abc", 50));
  ASSERT_TRUE(WaitUntil([&] { return MetricsSay(kDecoding + " 1"); }));
  engine_->fault = FakeFault::kPrefill;
  const auto failed = Submit(Call("xyz", 50));
  EXPECT_TRUE(absl::IsInternal(Collect(*failed).status));
  engine_->hold_decode = false;
  EXPECT_EQ(Collect(*running).text, Repeat("abc", 50));
  EXPECT_TRUE(AllFree());
}

TEST_F(GenerationBatcherTest, APromptThatFailsEndsTheStreamsThatStepBesideIt) {
  Start();
  engine_->hold_decode = true;
  const auto running = Submit(Call("abc", 50));
  ASSERT_TRUE(WaitUntil([&] { return MetricsSay(kDecoding + " 1"); }));
  engine_->steps_beside_prefill = true;
  engine_->fault = FakeFault::kPrefill;
  const auto failed = Submit(Call("xyz", 50));
  EXPECT_TRUE(absl::IsInternal(Collect(*failed).status));
  EXPECT_TRUE(absl::IsInternal(Collect(*running).status));
  EXPECT_TRUE(AllFree());
}

TEST_F(GenerationBatcherTest, StreamsThatStepBesidePromptsLoseNoToken) {
  Start({.chunk_tokens = 1});
  engine_->steps_beside_prefill = true;
  std::vector<std::unique_ptr<Generation>> all;
  for (int i = 0; i < 4; ++i) all.push_back(Submit(Call("abcdefgh", 100)));
  for (const auto& generation : all) EXPECT_EQ(Collect(*generation).text, Repeat("abcdefgh", 100));
  EXPECT_TRUE(AllFree());
}

TEST_F(GenerationBatcherTest, WhatWasHeldBackComesAtTheEnd) {
  Start();
  const auto generation = Submit(Call("abc", 5, {"bca "}));
  const StreamUpdate all = Collect(*generation);
  EXPECT_EQ(all.text, "abcab");
  EXPECT_EQ(all.finish, StreamFinish::kLength);
}

TEST_F(GenerationBatcherTest, ManyRequestsOfAllSizesGiveTheirOwnText) {
  BatcherOptions options;
  options.max_client_share = 1;
  Start({.slots = 4, .pages = 20, .chunk_tokens = 3}, options);
  std::mt19937 random(1);
  struct Running {
    std::unique_ptr<Generation> generation;
    std::string expected;
  };
  std::vector<Running> all;
  for (int i = 0; i < 200; ++i) {
    std::string prompt;
    for (size_t size = 1 + random() % 30; prompt.size() < size;) prompt += 'a' + random() % 26;
    const int64_t tokens = 1 + static_cast<int64_t>(random() % 100);
    all.push_back({Submit(Call(prompt, tokens)), Repeat(prompt, tokens)});
  }
  for (const Running& running : all) {
    const StreamUpdate update = Collect(*running.generation);
    EXPECT_EQ(update.text, running.expected);
    EXPECT_EQ(update.finish, StreamFinish::kLength);
  }
  EXPECT_TRUE(AllFree());
}

TEST_F(GenerationBatcherTest, RequestsJoinThoseThatRun) {
  Start();
  const auto first = Submit(Call("ab", 1000));
  ASSERT_TRUE(WaitUntil([&] { return engine_->steps > 2; }));
  const auto second = Submit(Call("xy", 4));
  EXPECT_EQ(Collect(*second).text, "xyxy");
  EXPECT_EQ(Collect(*first).text, Repeat("ab", 1000));
}

TEST_F(GenerationBatcherTest, ALongPromptDoesNotStopRunningStreams) {
  BatcherOptions options;
  options.max_stall = std::chrono::milliseconds(1);
  Start({.slots = 4, .pages = 4096}, options);
  engine_->hold_decode = true;
  const auto running = Submit(Call("ab", 30000));
  ASSERT_TRUE(WaitUntil([&] { return running->Take().has_value(); }));
  engine_->hold_prefill = true;
  const auto waiting = Submit(Call("long", 2));
  ASSERT_TRUE(WaitUntil([&] { return engine_->used_slots == 2; }));
  engine_->hold_decode = false;
  EXPECT_TRUE(WaitUntil([&] { return engine_->steps > 20; }));
  EXPECT_FALSE(waiting->Take().has_value());
  engine_->hold_prefill = false;
  EXPECT_EQ(Collect(*waiting).text, "lo");
}

TEST_F(GenerationBatcherTest, AReaderThatIsTooSlowIsCutAndStallsNobody) {
  BatcherOptions options;
  options.max_unread_tokens = 10;
  Start({}, options);
  const auto slow = Submit(Call("abc", 1000));
  ASSERT_TRUE(AllFree());
  const StreamUpdate all = Collect(*slow);
  EXPECT_EQ(all.token_ids.size(), 10u);
  EXPECT_TRUE(absl::IsResourceExhausted(all.status));
  EXPECT_EQ(Collect(*Submit(Call("x", 3))).text, "xxx");
}

TEST_F(GenerationBatcherTest, AClosedBatcherFinishesWhatItHas) {
  Start({.slots = 1});
  engine_->hold_decode = true;
  const auto running = Submit(Call("ab", 3));
  const auto waiting = Submit(Call("cd", 3));
  batcher_->Close();
  EXPECT_TRUE(absl::IsUnavailable(batcher_->Submit(Call("x", 1)).status()));
  engine_->hold_decode = false;
  EXPECT_EQ(Collect(*running).text, "aba");
  EXPECT_EQ(Collect(*waiting).text, "cdc");
}

TEST_F(GenerationBatcherTest, AbortEndsWhatWaitsAndWhatRuns) {
  Start({.slots = 1});
  engine_->hold_decode = true;
  const auto running = Submit(Call("ab", 3));
  const auto waiting = Submit(Call("cd", 3));
  ASSERT_TRUE(WaitUntil([&] { return engine_->used_slots == 1; }));
  batcher_->Abort(Unavailable("stopping"));
  EXPECT_TRUE(absl::IsUnavailable(Collect(*running).status));
  EXPECT_TRUE(absl::IsUnavailable(Collect(*waiting).status));
  EXPECT_TRUE(AllFree());
}

// Two that need more than half of the pages each, for long; a free slot and free pages are left.
TEST_F(GenerationBatcherTest, TheHeartbeatGoesOnWithoutWork) {
  Start();
  const auto before = batcher_->heartbeat();
  EXPECT_TRUE(WaitUntil([&] { return batcher_->heartbeat() > before; }));
}

TEST_F(GenerationBatcherTest, WithoutTokenizerThereAreTokensAlone) {
  tokenizer_ = nullptr;
  Start();
  const auto generation = Submit(Call("ab", 3));
  const StreamUpdate all = Collect(*generation);
  EXPECT_EQ(all.text, "");
  EXPECT_EQ(all.token_ids, (std::vector<int32_t>{'a', 'b', 'a'}));
}

}  // namespace
}  // namespace hippodrome::generation_batcher_test
