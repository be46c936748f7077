#include "server/batching/generation_batcher.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "hippodrome/v1/states.pb.h"
#include "tests/testing/byte_tokenizer.h"
#include "tests/testing/fake_engine.h"
#include "tests/testing/wait_until.h"

namespace hippodrome::generation_batcher_test {
namespace {

GenerationCall Call(const std::string& prompt, int64_t max_tokens,
                    std::vector<std::string> stop = {}) {
  GenerationCall call;
  for (const char c : prompt) call.request.prompt.push_back(static_cast<unsigned char>(c));
  call.request.max_tokens = max_tokens;
  call.stop = std::move(stop);
  return call;
}

// What the fake engine says to `prompt`.
std::string Repeat(const std::string& prompt, size_t tokens) {
  std::string text;
  while (text.size() < tokens) text += prompt[text.size() % prompt.size()];
  return text;
}

const std::string kDecoding = "hippodrome_requests_running{model=\"m\",phase=\"decode\"}";

class GenerationBatcherTest : public testing::Test {
 protected:
  void Start(const FakeEngineOptions& engine = {}, const BatcherOptions& options = {}) {
    engine_ = std::make_unique<FakeEngine>(engine);
    batcher_ = std::make_unique<GenerationBatcher>(*engine_, tokenizer_.get(), options, model_);
  }

  std::unique_ptr<Generation> Submit(GenerationCall call) {
    auto generation = batcher_->Submit(std::move(call));
    EXPECT_TRUE(generation.ok()) << generation.status();
    return *std::move(generation);
  }

  // Everything up to the end.
  static StreamUpdate Collect(Generation& generation) {
    StreamUpdate all;
    WaitUntil([&] {
      const auto update = generation.Take();
      if (!update) return false;
      all.text += update->text;
      all.token_ids.insert(all.token_ids.end(), update->token_ids.begin(), update->token_ids.end());
      all.finish = update->finish;
      all.status = update->status;
      all.prompt_tokens = update->prompt_tokens;
      all.completion_tokens = update->completion_tokens;
      return update->last();
    });
    return all;
  }

  bool AllFree() {
    return WaitUntil([&] {
      return batcher_->pending() == 0 && engine_->used_slots == 0 && engine_->used_pages == 0;
    });
  }

  bool MetricsSay(const std::string& line) {
    return metrics_.Text().find(line + "\n") != std::string::npos;
  }

  std::unique_ptr<BpeTokenizer> tokenizer_ = NewByteTokenizer();
  Metrics metrics_;
  ModelMetrics model_{metrics_.registry(), "m"};
  std::unique_ptr<FakeEngine> engine_;
  std::unique_ptr<GenerationBatcher> batcher_;
};

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

TEST_F(GenerationBatcherTest, WhatNeverFitsIsRefusedAtOnceWithTheNumbers) {
  Start({.slots = 4, .pages = 4});
  const auto generation = batcher_->Submit(Call("abc", 1000));
  EXPECT_EQ(generation.status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_NE(Message(generation.status()).find("needs 63 pages"), std::string::npos);
  EXPECT_TRUE(
      MetricsSay("hippodrome_admission_rejected_total{model=\"m\",reason=\"never_fits\"} 1"));
  EXPECT_EQ(batcher_->pending(), 0);
}

TEST_F(GenerationBatcherTest, AFullQueueRefusesUntilThereIsRoom) {
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

TEST_F(GenerationBatcherTest, WaitingPromptsAreBoundedInTokens) {
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

TEST_F(GenerationBatcherTest, AClientThatFillsTheQueueLeavesRoomForOthers) {
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

TEST_F(GenerationBatcherTest, CancellingInTheQueueFreesThePlace) {
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

TEST_F(GenerationBatcherTest, CancellingInPrefillFreesEverything) {
  Start();
  engine_->hold_prefill = true;
  auto generation = Submit(Call("abc", 5));
  ASSERT_TRUE(WaitUntil([&] { return engine_->used_slots == 1; }));
  generation.reset();
  EXPECT_TRUE(AllFree());
  EXPECT_TRUE(MetricsSay("hippodrome_cancelled_total{model=\"m\",where=\"prefill\"} 1"));
}

TEST_F(GenerationBatcherTest, CancellingInDecodeFreesEverythingAndHurtsNobody) {
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

TEST_F(GenerationBatcherTest, RandomCancellationsLeaveNothingBehind) {
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
TEST_F(GenerationBatcherTest, WhoWaitsForPagesDoesNotBlockThoseThatFit) {
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

TEST_F(GenerationBatcherTest, ClientsTakeTurnsAndCallsOfManyPromptsCountAsOne) {
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

TEST_F(GenerationBatcherTest, WhoHasWaitedForTooLongIsTold) {
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

TEST_F(GenerationBatcherTest, AfterItsDeadlineNothingStarts) {
  Start();
  GenerationCall call = Call("cd", 3);
  call.caller.deadline = std::chrono::steady_clock::now() - std::chrono::seconds(1);
  const auto generation = Submit(std::move(call));
  EXPECT_EQ(Collect(*generation).status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(AllFree());
  EXPECT_EQ(engine_->admitted(), "");
}

TEST_F(GenerationBatcherTest, AClientsDeadlineEndsItsRequestWhereverItIs) {
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

TEST_F(GenerationBatcherTest, AfterADeadlineOneStepIsMadeAtMost) {
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

// Keeps states as a slow store does.
struct SlowStore {
  std::atomic<bool> asked = false;
  SavedState state;
  StateKept kept;

  void Attach(GenerationCall& call) {
    call.keep_state = [this](SavedState handed, StateKept done) {
      state = std::move(handed);
      kept = std::move(done);
      asked = true;
    };
  }
};

TEST_F(GenerationBatcherTest, TheLastTokenComesWithTheState) {
  Start();
  SlowStore store;
  GenerationCall call = Call("abc", 4);
  store.Attach(call);
  const auto generation = Submit(std::move(call));
  ASSERT_TRUE(WaitUntil([&] { return store.asked.load(); }));
  EXPECT_EQ(store.state.position, 6);
  EXPECT_EQ(store.state.last_token, 'a');
  // What it held is free, but its client is still waiting.
  EXPECT_TRUE(WaitUntil([&] { return engine_->used_slots == 0; }));
  EXPECT_EQ(batcher_->pending(), 1);
  int64_t tokens = 0;
  while (const auto update = generation->Take()) {
    EXPECT_FALSE(update->last());
    tokens += std::ssize(update->token_ids);
  }
  EXPECT_EQ(tokens, 3);
  auto state = std::make_shared<v1::State>();
  state->set_handle("h");
  std::exchange(store.kept, nullptr)(state);
  const StreamUpdate last = Collect(*generation);
  EXPECT_EQ(last.text, "a");
  EXPECT_EQ(last.finish, StreamFinish::kLength);
  EXPECT_EQ(last.completion_tokens, 4);
  EXPECT_TRUE(AllFree());
}

TEST_F(GenerationBatcherTest, AStateHasAllTokensThatWereGivenOut) {
  Start();
  SlowStore store;
  GenerationCall call = Call("abcdef", 20, {"bcd"});
  store.Attach(call);
  const auto generation = Submit(std::move(call));
  ASSERT_TRUE(WaitUntil([&] { return store.asked.load(); }));
  std::exchange(store.kept, nullptr)(nullptr);
  const StreamUpdate all = Collect(*generation);
  EXPECT_EQ(all.text, "a");
  EXPECT_EQ(all.finish, StreamFinish::kStopString);
  EXPECT_EQ(store.state.position + 1, 6 + std::ssize(all.token_ids));
}

TEST_F(GenerationBatcherTest, WhatGoesOnCountsWhatItTakesIn) {
  Start();
  SlowStore store;
  GenerationCall first = Call("abc", 4);
  store.Attach(first);
  const auto generation = Submit(std::move(first));
  ASSERT_TRUE(WaitUntil([&] { return store.asked.load(); }));
  std::exchange(store.kept, nullptr)(nullptr);
  EXPECT_TRUE(MetricsSay("hippodrome_prompt_tokens_total{model=\"m\"} 3"));
  GenerationCall second = Call("xy", 2);
  second.request.start = std::make_shared<const SavedState>(store.state);
  const StreamUpdate all = Collect(*Submit(std::move(second)));
  EXPECT_EQ(all.token_ids.size(), 2);
  EXPECT_EQ(all.prompt_tokens, 9);
  // The token that was not in the state, and two new ones.
  EXPECT_TRUE(MetricsSay("hippodrome_prompt_tokens_total{model=\"m\"} 6"));
  EXPECT_TRUE(AllFree());
}

TEST_F(GenerationBatcherTest, AnAbandonedStateIsKeptForNobody) {
  Start();
  SlowStore store;
  GenerationCall call = Call("abc", 2);
  store.Attach(call);
  {
    const auto generation = Submit(std::move(call));
    ASSERT_TRUE(WaitUntil([&] { return store.asked.load(); }));
  }
  EXPECT_EQ(batcher_->pending(), 1);
  std::exchange(store.kept, nullptr)(nullptr);
  EXPECT_TRUE(AllFree());
}

}  // namespace
}  // namespace hippodrome::generation_batcher_test
