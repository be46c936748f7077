#include "server/http/large_body_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tests/testing/wait_until.h"

namespace hippodrome::large_body_queue_test {
namespace {

constexpr int64_t kLarge = int64_t{8} << 20;
constexpr int64_t kSmall = int64_t{70} << 10;

class LargeBodyQueueTest : public testing::Test {
 protected:
  // Work that ends when hold_ does.
  std::function<void()> Held() {
    return [this] {
      ++begun_;
      WaitUntil([&] { return !hold_; });
    };
  }
  std::function<void()> Note(const std::string& name) {
    return [this, name] {
      std::lock_guard lock(mutex_);
      done_.push_back(name);
    };
  }
  size_t done() {
    std::lock_guard lock(mutex_);
    return done_.size();
  }

  std::atomic<bool> hold_ = true;
  std::atomic<int> begun_ = 0;
  std::mutex mutex_;
  std::vector<std::string> done_;
  LargeBodyQueue queue_;
};

TEST_F(LargeBodyQueueTest, ASmallBodyWaitsForNoLargeOne) {
  const auto first = queue_.Submit(kLarge, Held());
  const auto second = queue_.Submit(kLarge, Held());
  const auto small = queue_.Submit(kSmall, Note("small"));
  EXPECT_TRUE(WaitUntil([&] { return done() == 1; }));
  hold_ = false;
}

TEST_F(LargeBodyQueueTest, SmallerOnesGoFirst) {
  const auto running = queue_.Submit(kLarge, Held());
  ASSERT_TRUE(WaitUntil([&] { return begun_ == 1; }));
  const auto a = queue_.Submit(kLarge, Note("large"));
  const auto b = queue_.Submit(4 << 20, Note("middle"));
  const auto c = queue_.Submit(2 << 20, Note("small"));
  hold_ = false;
  EXPECT_TRUE(WaitUntil([&] { return done() == 3; }));
  EXPECT_EQ(done_, (std::vector<std::string>{"small", "middle", "large"}));
}

TEST_F(LargeBodyQueueTest, WorkThatNobodyWaitsForIsDropped) {
  const auto running = queue_.Submit(kLarge, Held());
  ASSERT_TRUE(WaitUntil([&] { return begun_ == 1; }));
  const auto resource = std::make_shared<int>(1);
  {
    const auto dropped = queue_.Submit(kLarge, [resource, note = Note("dropped")] { note(); });
    EXPECT_EQ(queue_.waiting(), 1);
    EXPECT_EQ(resource.use_count(), 2);
  }
  EXPECT_EQ(queue_.waiting(), 0);
  EXPECT_EQ(resource.use_count(), 1);
  const auto last = queue_.Submit(kLarge, Note("last"));
  hold_ = false;
  EXPECT_TRUE(WaitUntil([&] { return done() == 1; }));
  EXPECT_EQ(done_[0], "last");
}

TEST_F(LargeBodyQueueTest, StopDropsWhatWaits) {
  const auto running = queue_.Submit(kLarge, Held());
  ASSERT_TRUE(WaitUntil([&] { return begun_ == 1; }));
  const auto dropped = queue_.Submit(kLarge, Note("dropped"));
  std::thread stop([&] { queue_.Stop(); });
  EXPECT_TRUE(WaitUntil([&] { return queue_.waiting() == 0; }));
  hold_ = false;
  stop.join();
  const auto late = queue_.Submit(kSmall, Note("late"));
  EXPECT_EQ(done(), 0u);
}

}  // namespace
}  // namespace hippodrome::large_body_queue_test
