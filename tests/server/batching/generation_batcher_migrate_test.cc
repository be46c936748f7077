// Requests that leave a batcher with their state, for another server to go on.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "hippodrome/v1/states.pb.h"
#include "server/batching/generation_batcher.h"
#include "tests/testing/batcher_fixture.h"

namespace hippodrome::generation_batcher_migrate_test {
namespace {

class GenerationBatcherMigrateTest : public BatcherFixture {
 protected:
  // `call`, whose state the test takes while there is room.
  GenerationCall Migratable(GenerationCall call) {
    call.migrate = [this](SavedState state, StateKept kept) {
      if (!room_) {
        ++refused_;
        return false;
      }
      state_ = std::move(state);
      kept_ = std::move(kept);
      asked_ = true;
      return true;
    };
    return call;
  }
  void Migrate() {
    batcher_->Close();
    batcher_->Migrate();
  }
  // Once the state is asked for, it is kept.
  void Keep(std::shared_ptr<const v1::State> state) {
    ASSERT_TRUE(WaitUntil([&] { return asked_.load(); }));
    std::exchange(kept_, nullptr)(std::move(state));
  }
  // Sends `call` and waits until it decodes, without getting further.
  std::unique_ptr<Generation> SubmitHeld(GenerationCall call) {
    engine_->hold_decode = true;
    auto generation = Submit(std::move(call));
    EXPECT_TRUE(WaitUntil(
        [&] { return MetricsSay("hippodrome_requests_running{model=\"m\",phase=\"decode\"} 1"); }));
    return generation;
  }

  std::atomic<bool> room_ = true;
  std::atomic<bool> asked_ = false;
  std::atomic<int64_t> refused_ = 0;
  SavedState state_;
  StateKept kept_;
};

TEST_F(GenerationBatcherMigrateTest, WhatRunsLeavesWithItsStateAndItsPendingText) {
  Start({.slots = 1});
  const auto runs = SubmitHeld(Migratable(Call("xyz", 50, {"xq"})));
  const auto waits = Submit(Migratable(Call("w", 5)));
  Migrate();
  auto state = std::make_shared<v1::State>();
  state->set_handle("h");
  Keep(state);
  const StreamUpdate all = Collect(*runs);
  EXPECT_EQ(all.finish, StreamFinish::kMigrated);
  EXPECT_TRUE(all.status.ok());
  EXPECT_EQ(all.text, "");
  EXPECT_EQ(all.token_ids.size(), 1u);
  EXPECT_EQ(all.completion_tokens, 1);
  EXPECT_EQ(all.prompt_tokens, 3);
  EXPECT_EQ(state_.position, 3);
  EXPECT_EQ(state_.last_token, 'x');
  EXPECT_EQ(state_.pending_text, "x");
  EXPECT_TRUE(absl::IsUnavailable(Collect(*waits).status));
  EXPECT_TRUE(AllFree());
  EXPECT_TRUE(MetricsSay("hippodrome_requests_migrated_total{model=\"m\"} 1"));
}

TEST_F(GenerationBatcherMigrateTest, TheTextGoesOnWhereItEnded) {
  Start();
  SavedState state{.model = "fake",
                   .arithmetic = "fake",
                   .position = 1,
                   .tokens = {'x'},
                   .last_token = 'y',
                   .pending_text = "x"};
  GenerationCall call = Call("", 3, {"xq"});
  call.request.start = std::make_shared<const SavedState>(state);
  EXPECT_EQ(Collect(*Submit(call)).text, "xxyx");  // of which "x" was pending
  state.tokens = {'q'};
  call.request.start = std::make_shared<const SavedState>(state);
  const StreamUpdate stopped = Collect(*Submit(call));
  EXPECT_EQ(stopped.text, "");
  EXPECT_EQ(stopped.finish, StreamFinish::kStopString);
  // What follows a new prompt is another text.
  call.request.prompt = {'n'};
  EXPECT_EQ(Collect(*Submit(call)).text, "qyn");
}

TEST_F(GenerationBatcherMigrateTest, HalfAPromptLeavesBetweenTwoOfItsParts) {
  Start();
  engine_->hold_prefill = true;
  const auto generation = Submit(Migratable(Call(std::string(20, 'p'), 5)));
  EXPECT_TRUE(WaitUntil([&] { return engine_->used_slots == 1; }));
  Migrate();
  EXPECT_FALSE(asked_);  // nothing is taken in yet
  engine_->hold_prefill = false;
  Keep(std::make_shared<v1::State>());
  const StreamUpdate all = Collect(*generation);
  EXPECT_EQ(all.finish, StreamFinish::kMigrated);
  EXPECT_EQ(all.completion_tokens, 0);
  EXPECT_EQ(all.prompt_tokens, 20);
  EXPECT_EQ(state_.position, 8);
  EXPECT_FALSE(state_.last_token);
  EXPECT_TRUE(AllFree());
}

TEST_F(GenerationBatcherMigrateTest, GoesOnUntilThereIsRoomForItsState) {
  Start();
  room_ = false;
  engine_->slow = true;
  const auto generation = SubmitHeld(Migratable(Call("abc", 900)));
  engine_->hold_decode = false;
  Migrate();
  EXPECT_TRUE(WaitUntil([&] { return refused_ > 3; }));
  room_ = true;
  Keep(std::make_shared<v1::State>());
  const StreamUpdate all = Collect(*generation);
  EXPECT_EQ(all.finish, StreamFinish::kMigrated);
  EXPECT_EQ(all.text, Repeat("abc", all.token_ids.size()));
  EXPECT_EQ(state_.position + 1, 3 + std::ssize(all.token_ids));
}

TEST_F(GenerationBatcherMigrateTest, WhatCannotGoOnElsewhereGoesOnHere) {
  Start();
  const auto generation = SubmitHeld(Call("abc", 20));
  Migrate();
  engine_->hold_decode = false;
  EXPECT_EQ(Collect(*generation).finish, StreamFinish::kLength);
}

TEST_F(GenerationBatcherMigrateTest, AStateThatIsNotKeptIsAnError) {
  Start();
  const auto generation = SubmitHeld(Migratable(Call("abc", 20)));
  Migrate();
  Keep(nullptr);
  EXPECT_TRUE(absl::IsUnavailable(Collect(*generation).status));
  EXPECT_TRUE(AllFree());
}

}  // namespace
}  // namespace hippodrome::generation_batcher_migrate_test
