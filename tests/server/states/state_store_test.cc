// What every store does; each has a test of its own besides.
#include "server/states/state_store.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "engine/base/status.h"
#include "server/states/directory_store.h"
#include "server/states/memory_store.h"
#include "tests/testing/state_stores.h"
#include "tests/testing/temporary_directory.h"

namespace hippodrome::state_store_test {
namespace {

using std::chrono::seconds;

TEST(StateHandleTest, IsRandomAndHexadecimal) {
  std::set<std::string> handles;
  for (int i = 0; i < 1000; ++i) {
    const std::string handle = NewStateHandle().value();
    EXPECT_TRUE(IsStateHandle(handle)) << handle;
    handles.insert(handle);
  }
  EXPECT_EQ(handles.size(), 1000u);
  const std::string digits(31, 'a');
  for (const std::string& other : {std::string(), digits, digits + "aa", digits + "A", digits + "/",
                                   digits + std::string(1, '\0')}) {
    EXPECT_FALSE(IsStateHandle(other)) << other;
  }
}

class StateStoreTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const auto clock = [this] { return now_; };
    if (GetParam() == "Memory") {
      store_ = MakeMemoryStore(kBytes, metrics_.metrics(), clock);
    } else {
      store_ =
          OpenDirectoryStore(directory_.File("states"), kBytes, metrics_.metrics(), clock).value();
    }
  }

  absl::Status Put(const std::string& owner, const std::string& handle, const StateBytes& file,
                   int64_t lives = 100) {
    return store_->Put(owner, handle, file, seconds(lives)).status();
  }
  bool Has(const std::string& owner, const std::string& handle) {
    return store_->Get(owner, handle).ok();
  }

  static constexpr int64_t kBytes = 100'000;
  TemporaryDirectory directory_;
  StoreMetrics metrics_;
  int64_t now_ = UnixSeconds();
  std::unique_ptr<StateStore> store_;
  const StateBytes file_ = SmallStateFile(5);
};

TEST_P(StateStoreTest, GivesBackWhatWasPut) {
  const std::string handle = HandleOf("a");
  const auto stored = store_->Put("owner", handle, file_, seconds(60));
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_EQ(stored->handle, handle);
  EXPECT_EQ(stored->bytes, std::ssize(*file_));
  EXPECT_EQ(stored->expires_at, now_ + 60);
  EXPECT_EQ(**store_->Get("owner", handle), *file_);
  EXPECT_EQ(metrics_.Value("hits_total"), 1);
  EXPECT_EQ(metrics_.Value("misses_total"), 0);
  EXPECT_EQ(metrics_.Value("stored_bytes_total"), std::ssize(*file_));
  EXPECT_EQ(metrics_.Value("states"), 1);
  EXPECT_EQ(metrics_.Value("bytes"), std::ssize(*file_));
}

TEST_P(StateStoreTest, WhatIsNotThereIsOneError) {
  ASSERT_TRUE(Put("owner", HandleOf("a"), file_).ok());
  const absl::Status unknown = store_->Get("owner", HandleOf("b")).status();
  EXPECT_TRUE(absl::IsNotFound(unknown));
  EXPECT_EQ(store_->Get("other", HandleOf("a")).status(), unknown);
  EXPECT_EQ(store_->Remove("other", HandleOf("a")), unknown);
  EXPECT_EQ(store_->Get("owner", "../" + HandleOf("a")).status(), unknown);
  EXPECT_EQ(store_->Get("owner", "").status(), unknown);
  EXPECT_EQ(store_->Remove("owner", "."), unknown);
  EXPECT_EQ(metrics_.Value("misses_total"), 4);
  EXPECT_EQ(metrics_.Value("failures_total{operation=\"get\"}"), 0);
  EXPECT_TRUE(Has("owner", HandleOf("a")));
}

TEST_P(StateStoreTest, OwnersHaveHandlesOfTheirOwn) {
  const StateBytes other = SmallStateFile(6);
  ASSERT_TRUE(Put("owner", HandleOf("a"), file_).ok());
  ASSERT_TRUE(Put("", HandleOf("a"), other).ok());
  ASSERT_TRUE(Put("../owner", HandleOf("c"), other).ok());
  EXPECT_EQ(**store_->Get("owner", HandleOf("a")), *file_);
  EXPECT_EQ(**store_->Get("", HandleOf("a")), *other);
  EXPECT_TRUE(Has("../owner", HandleOf("c")));
  EXPECT_EQ(store_->List("owner")->size(), 1u);
  EXPECT_TRUE(store_->Remove("owner", HandleOf("a")).ok());
  EXPECT_FALSE(Has("owner", HandleOf("a")));
  EXPECT_TRUE(Has("", HandleOf("a")));
}

TEST_P(StateStoreTest, ReplacesWhatHasTheSameHandle) {
  const StateBytes other = SmallStateFile(6);
  ASSERT_TRUE(Put("owner", HandleOf("a"), file_, 60).ok());
  ASSERT_TRUE(Put("owner", HandleOf("a"), other, 50).ok());
  EXPECT_EQ(**store_->Get("owner", HandleOf("a")), *other);
  const auto states = store_->List("owner").value();
  ASSERT_EQ(states.size(), 1u);
  EXPECT_EQ(states[0].bytes, std::ssize(*other));
  EXPECT_EQ(states[0].expires_at, now_ + 50);
}

TEST_P(StateStoreTest, ListsByHandle) {
  EXPECT_TRUE(store_->List("owner")->empty());
  for (const char* name : {"b", "c", "a"}) {
    ASSERT_TRUE(Put("owner", HandleOf(name), file_).ok());
  }
  const auto states = store_->List("owner").value();
  ASSERT_EQ(states.size(), 3u);
  EXPECT_EQ(states[0].handle, HandleOf("a"));
  EXPECT_EQ(states[2].handle, HandleOf("c"));
  EXPECT_EQ(states[1].bytes, std::ssize(*file_));
  EXPECT_EQ(states[1].expires_at, now_ + 100);
}

TEST_P(StateStoreTest, Expires) {
  ASSERT_TRUE(Put("owner", HandleOf("a"), file_, 10).ok());
  ASSERT_TRUE(Put("owner", HandleOf("b"), file_, 20).ok());
  now_ += 9;
  EXPECT_TRUE(Has("owner", HandleOf("a")));
  now_ += 1;
  EXPECT_FALSE(Has("owner", HandleOf("a")));
  EXPECT_TRUE(absl::IsNotFound(store_->Remove("owner", HandleOf("a"))));
  EXPECT_EQ(store_->List("owner")->size(), 1u);
  ASSERT_TRUE(Put("owner", HandleOf("c"), file_, 20).ok());
  EXPECT_EQ(metrics_.Value("states"), 2);
  EXPECT_EQ(metrics_.Value("evictions_total"), 0) << "it expired";
}

TEST_P(StateStoreTest, RefusesWhatNeverFits) {
  ASSERT_TRUE(Put("owner", HandleOf("a"), file_).ok());
  const auto huge = std::make_shared<const std::string>(kBytes + 1, 'x');
  EXPECT_TRUE(absl::IsResourceExhausted(Put("owner", HandleOf("b"), huge)));
  EXPECT_TRUE(Has("owner", HandleOf("a"))) << "nothing went for it";
  EXPECT_EQ(metrics_.Value("failures_total{operation=\"put\"}"), 1);
}

TEST_P(StateStoreTest, StaysWithinItsBudget) {
  const int64_t room = kBytes / std::ssize(*file_);
  for (int i = 0; i < 2 * room; ++i) {
    ASSERT_TRUE(Put("owner" + std::to_string(i % 3), HandleOf(std::to_string(i)), file_).ok());
    EXPECT_LE(metrics_.Value("bytes"), kBytes);
  }
  EXPECT_EQ(metrics_.Value("states"), room);
  EXPECT_EQ(metrics_.Value("evictions_total"), 2 * room - room);
}

TEST_P(StateStoreTest, ThreadsSeeWholeStates) {
  const StateBytes one = SmallStateFile(30, 1), two = SmallStateFile(30, 2);
  const auto work = [&](int thread) {
    for (int i = 0; i < 40; ++i) {
      const std::string handle = HandleOf(std::to_string(i % 7));
      if ((i + thread) % 3 == 0) store_->Remove("owner", handle).IgnoreError();
      EXPECT_TRUE(Put("owner", handle, thread % 2 == 0 ? one : two).ok());
      const auto got = store_->Get("owner", handle);
      if (got.ok()) {
        EXPECT_TRUE(**got == *one || **got == *two);
      }
      EXPECT_TRUE(store_->List("owner").ok());
    }
  };
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 4; ++thread) threads.emplace_back(work, thread);
  threads.clear();
  EXPECT_EQ(metrics_.Value("damaged_total"), 0);
}

INSTANTIATE_TEST_SUITE_P(Stores, StateStoreTest, testing::Values("Memory", "Directory"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace hippodrome::state_store_test
