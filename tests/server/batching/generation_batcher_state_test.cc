#include "server/batching/generation_batcher.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <utility>

#include "hippodrome/v1/states.pb.h"
#include "tests/testing/batcher_fixture.h"

namespace hippodrome::generation_batcher_state_test {
namespace {

// States are kept as by a slow store: it has been asked, and answers when a test says so.
class GenerationBatcherStateTest : public BatcherFixture {
 protected:
  // Submits `call`, and returns when its state is handed over.
  std::unique_ptr<Generation> Ask(GenerationCall call) {
    call.keep_state = [this](SavedState handed, StateKept done) {
      state_ = std::move(handed);
      kept_ = std::move(done);
      asked_ = true;
    };
    auto generation = Submit(std::move(call));
    EXPECT_TRUE(WaitUntil([&] { return asked_.load(); }));
    return generation;
  }
  void Keep(std::shared_ptr<const v1::State> state) {
    std::exchange(kept_, nullptr)(std::move(state));
  }

  std::atomic<bool> asked_ = false;
  SavedState state_;
  StateKept kept_;
};

TEST_F(GenerationBatcherStateTest, TheLastTokenComesWithTheState) {
  Start();
  const auto generation = Ask(Call("abc", 4));
  EXPECT_EQ(state_.position, 6);
  EXPECT_EQ(state_.last_token, 'a');
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
  Keep(state);
  const StreamUpdate last = Collect(*generation);
  EXPECT_EQ(last.text, "a");
  EXPECT_EQ(last.finish, StreamFinish::kLength);
  EXPECT_EQ(last.completion_tokens, 4);
  EXPECT_TRUE(AllFree());
}

TEST_F(GenerationBatcherStateTest, AStateHasAllTokensThatWereGivenOut) {
  Start();
  const auto generation = Ask(Call("abcdef", 20, {"bcd"}));
  Keep(nullptr);
  const StreamUpdate all = Collect(*generation);
  EXPECT_EQ(all.text, "a");
  EXPECT_EQ(all.finish, StreamFinish::kStopString);
  EXPECT_EQ(state_.position + 1, 6 + std::ssize(all.token_ids));
}

TEST_F(GenerationBatcherStateTest, WhatGoesOnCountsWhatItTakesIn) {
  Start();
  const auto generation = Ask(Call("abc", 4));
  Keep(nullptr);
  EXPECT_TRUE(MetricsSay("hippodrome_prompt_tokens_total{model=\"m\"} 3"));
  GenerationCall second = Call("xy", 2);
  second.request.start = std::make_shared<const SavedState>(state_);
  const StreamUpdate all = Collect(*Submit(std::move(second)));
  EXPECT_EQ(all.token_ids.size(), 2);
  EXPECT_EQ(all.prompt_tokens, 9);
  // The token that was not in the state, and two new ones.
  EXPECT_TRUE(MetricsSay("hippodrome_prompt_tokens_total{model=\"m\"} 6"));
  EXPECT_TRUE(AllFree());
}

// A character of which a part was given out is no text yet; the state has the part.
TEST_F(GenerationBatcherStateTest, AnIncompleteCharacterGoesIntoTheState) {
  Start();
  const auto generation = Ask(Call("a\u20ac", 2, {"\u20ac!"}));
  Keep(nullptr);
  EXPECT_EQ(Collect(*generation).text, "a");
  EXPECT_EQ(state_.pending_text, "\xE2");
  EXPECT_EQ(Collect(*Submit(Call("a\u20ac", 2))).text, "a\uFFFD");
}

TEST_F(GenerationBatcherStateTest, AnAbandonedStateIsKeptForNobody) {
  Start();
  Ask(Call("abc", 2)).reset();
  EXPECT_EQ(batcher_->pending(), 1);
  Keep(nullptr);
  EXPECT_TRUE(AllFree());
}

}  // namespace
}  // namespace hippodrome::generation_batcher_state_test
