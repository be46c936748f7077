#include "server/access/key_account.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "engine/base/status.h"
#include "server/status_map.h"

namespace hippodrome::key_account_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

class KeyAccountTest : public testing::Test {
 protected:
  std::shared_ptr<KeyAccount> Account(const KeyLimits& limits) {
    return std::make_shared<KeyAccount>(ApiKey{.name = "k", .limits = limits}, metrics_, start_);
  }
  std::string Value(const std::string& series) {
    const std::string text = metrics_.Text();
    const size_t at = text.find("\n" + series + " ");
    if (at == std::string::npos) return "";
    const size_t from = at + series.size() + 2;
    return text.substr(from, text.find('\n', from) - from);
  }
  std::string Held(const std::string& what) {
    return Value("hippodrome_key_" + what + "{key=\"k\"}");
  }
  std::string Refused(const std::string& reason) {
    return Value("hippodrome_key_refused_total{key=\"k\",reason=\"" + reason + "\"}");
  }

  const KeyAccount::Clock::time_point start_ = KeyAccount::Clock::now();
  Metrics metrics_;
};

TEST_F(KeyAccountTest, WithoutLimitsEverythingIsCountedAndNothingRefused) {
  const auto account = Account({});
  std::vector<std::shared_ptr<CallPermit>> permits;
  for (int i = 0; i < 1000; ++i) permits.push_back(account->Enter(start_).value());
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  EXPECT_TRUE(permits[0]->Reserve(kMost, kMost).ok());
  EXPECT_TRUE(permits[1]->Reserve(5, kMost).ok());
  EXPECT_TRUE(permits[0]->MayRun("any").ok());
  EXPECT_EQ(Held("calls_running"), "1000");
  permits.clear();
  EXPECT_EQ(Held("requests_total"), "1000");
  for (const char* what : {"calls_running", "reserved_tokens", "reserved_bytes"}) {
    EXPECT_EQ(Held(what), "0") << what;
  }
}

TEST_F(KeyAccountTest, ABurstThenOneForEachTimeThatPasses) {
  const auto account = Account({.requests_per_minute = 120, .burst = 3});
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(account->Enter(start_).ok()) << i;
  const auto refused = account->Enter(start_);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(IsLimitError(refused.status()));
  EXPECT_EQ(RetryAfterSeconds(refused.status()), 1);
  EXPECT_FALSE(account->Enter(start_ + milliseconds(499)).ok());
  EXPECT_TRUE(account->Enter(start_ + milliseconds(500)).ok());
  EXPECT_FALSE(account->Enter(start_ + milliseconds(501)).ok());
  // However long it was idle, no more than the burst.
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(account->Enter(start_ + seconds(3600)).ok());
  EXPECT_FALSE(account->Enter(start_ + seconds(3600)).ok());
  EXPECT_EQ(Refused("rate"), "4");
}

TEST_F(KeyAccountTest, CallsInTheBackgroundLeaveHalfToOthers) {
  const auto account = Account({.requests_per_minute = 60, .burst = 4, .calls = 3});
  const auto background = CallKind::kBackground;
  const auto first = account->Enter(start_, background);
  ASSERT_TRUE(first.ok());
  EXPECT_FALSE(account->Enter(start_, background).ok());
  auto awaited = account->Enter(start_);
  ASSERT_TRUE(awaited.ok());
  ASSERT_TRUE(account->Enter(start_).ok());
  // Now one call of the burst is left.
  const auto slow = Account({.requests_per_minute = 60, .burst = 4});
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(slow->Enter(start_, background).ok()) << i;
  EXPECT_EQ(RetryAfterSeconds(slow->Enter(start_, background).status()), 1);
  EXPECT_TRUE(slow->Enter(start_).ok());
  EXPECT_EQ(Refused("calls"), "0");
  EXPECT_EQ(Refused("rate"), "0");
}

TEST_F(KeyAccountTest, WhatTheServerDidNotTakeDoesNotCount) {
  const auto account = Account({.requests_per_minute = 60, .burst = 1});
  (*account->Enter(start_))->TakeBack();
  const auto again = account->Enter(start_);
  ASSERT_TRUE(again.ok());
  EXPECT_FALSE(account->Enter(start_).ok());
  (*again)->TakeBack();
  (*again)->TakeBack();
  EXPECT_TRUE(account->Enter(start_).ok());
  EXPECT_FALSE(account->Enter(start_).ok());
}

TEST_F(KeyAccountTest, ReservationsInTheBackgroundLeaveHalfToOthers) {
  const auto account = Account({.tokens = 100});
  const auto large = *account->Enter(start_, CallKind::kBackground);
  EXPECT_TRUE(large->Reserve(80, 0).ok());  // alone it may
  const auto next = *account->Enter(start_, CallKind::kBackground);
  EXPECT_TRUE(IsLimitError(next->Reserve(10, 0)));
  EXPECT_TRUE((*account->Enter(start_))->Reserve(10, 0).ok());
  EXPECT_FALSE(IsLimitError(next->Reserve(101, 0)));
}

TEST_F(KeyAccountTest, RetryAfterIsWhenTheNextOneMayCome) {
  const auto account = Account({.requests_per_minute = 2, .burst = 1});
  ASSERT_TRUE(account->Enter(start_).ok());
  EXPECT_EQ(RetryAfterSeconds(account->Enter(start_).status()), 30);
  EXPECT_EQ(RetryAfterSeconds(account->Enter(start_ + milliseconds(10500)).status()), 20);
  EXPECT_TRUE(account->Enter(start_ + seconds(30)).ok());
}

TEST_F(KeyAccountTest, WithoutABurstTenSecondsMayComeAtOnce) {
  const auto account = Account({.requests_per_minute = 60});
  int entered = 0;
  while (account->Enter(start_).ok()) ++entered;
  EXPECT_EQ(entered, 10);
  const auto slow = Account({.requests_per_minute = 1});
  EXPECT_TRUE(slow->Enter(start_).ok());
  EXPECT_FALSE(slow->Enter(start_).ok());
}

TEST_F(KeyAccountTest, CallsAtOnceAreFreedOnceHoweverTheyEnd) {
  const auto account = Account({.calls = 2});
  auto first = account->Enter(start_).value();
  const auto second = account->Enter(start_).value();
  const auto third = account->Enter(start_);
  EXPECT_THAT(Message(third.status()), HasSubstr("2 calls at once"));
  EXPECT_EQ(RetryAfterSeconds(third.status()), 1);
  first.reset();
  auto fourth = account->Enter(start_).value();
  EXPECT_FALSE(account->Enter(start_).ok());
  fourth.reset();
  EXPECT_TRUE(account->Enter(start_).ok());
  EXPECT_EQ(Refused("calls"), "2");
}

TEST_F(KeyAccountTest, ARefusedCallTakesNothingOfTheBurst) {
  const auto account = Account({.requests_per_minute = 1, .burst = 2, .calls = 1});
  auto permit = account->Enter(start_).value();
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(account->Enter(start_).ok());
  permit.reset();
  EXPECT_TRUE(account->Enter(start_).ok());
}

TEST_F(KeyAccountTest, ReservationsAddUpOverCallsAndEndWithThem) {
  const auto account = Account({.tokens = 100, .bytes = 1000});
  auto first = account->Enter(start_).value();
  const auto second = account->Enter(start_).value();
  EXPECT_TRUE(first->Reserve(40, 400).ok());
  EXPECT_TRUE(first->Reserve(20, 100).ok());
  EXPECT_TRUE(second->Reserve(40, 0).ok());
  EXPECT_EQ(Held("reserved_tokens"), "100");
  EXPECT_EQ(Held("reserved_bytes"), "500");
  const absl::Status full = second->Reserve(1, 0);
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(IsLimitError(full));
  EXPECT_EQ(second->Reserve(0, 501).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(second->Reserve(0, 500).ok());
  first.reset();
  EXPECT_TRUE(second->Reserve(60, 500).ok());
  EXPECT_EQ(Refused("tokens"), "1");
  EXPECT_EQ(Refused("bytes"), "1");
}

TEST_F(KeyAccountTest, WhatNeverFitsIsNotToBeTriedAgain) {
  const auto account = Account({.tokens = 100, .bytes = 1000});
  const auto permit = account->Enter(start_).value();
  EXPECT_EQ(permit->Reserve(101, 0).code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(permit->Reserve(0, 1001).code(), absl::StatusCode::kOutOfRange);
  EXPECT_TRUE(permit->Reserve(60, 0).ok());
  const absl::Status status = permit->Reserve(std::numeric_limits<int64_t>::max(), 0);
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(RetryAfterSeconds(status), 0);
  EXPECT_EQ(Held("reserved_tokens"), "60");
}

TEST_F(KeyAccountTest, ModelsAreThoseOfTheFile) {
  const auto account = std::make_shared<KeyAccount>(
      ApiKey{.name = "k", .models = std::vector<std::string>{"a", "b"}}, metrics_, start_);
  const auto permit = account->Enter(start_).value();
  EXPECT_TRUE(permit->MayRun("b").ok());
  EXPECT_EQ(permit->MayRun("c").code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(Refused("model"), "1");
}

TEST_F(KeyAccountTest, NewLimitsCountWhatOldCallsHold) {
  const auto account = Account({.requests_per_minute = 1, .burst = 4});
  auto held = account->Enter(start_).value();
  ASSERT_TRUE(held->Reserve(50, 0).ok());
  account->Configure(
      {.name = "k", .limits = {.requests_per_minute = 1, .burst = 100, .calls = 2, .tokens = 60}},
      start_);
  const auto next = account->Enter(start_).value();
  EXPECT_EQ(next->Reserve(20, 0).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_FALSE(account->Enter(start_).ok());
  held.reset();
  EXPECT_TRUE(next->Reserve(20, 0).ok());
  // What was left of the burst is left, and no more: reading the file again fills nothing up.
  int entered = 0;
  while (account->Enter(start_).ok()) ++entered;
  EXPECT_EQ(entered, 2);
}

TEST_F(KeyAccountTest, ThreadsNeverHoldMoreThanTheLimit) {
  const auto account = Account({.calls = 3, .tokens = 30});
  std::atomic<int> held = 0;
  std::atomic<int> most = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) {
        const auto permit = account->Enter(start_);
        if (!permit.ok()) continue;
        const int now = held.fetch_add(1) + 1;
        int seen = most.load();
        while (seen < now && !most.compare_exchange_weak(seen, now)) {
        }
        EXPECT_TRUE((*permit)->Reserve(10, 0).ok());
        held.fetch_sub(1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(most.load(), 3);
  EXPECT_EQ(Held("calls_running"), "0");
  EXPECT_EQ(Held("reserved_tokens"), "0");
}

}  // namespace
}  // namespace hippodrome::key_account_test
