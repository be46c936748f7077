#include "kernels/cpu/base/thread_pool.h"

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

namespace hippodrome::thread_pool_test {
namespace {

TEST(ThreadPoolTest, RunsEveryIndexOnce) {
  for (int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (int64_t count : {0, 1, 2, 7, 1000}) {
      std::vector<int> runs(static_cast<size_t>(count));
      pool.Run(count, [&](int64_t index, int thread) {
        ASSERT_GE(thread, 0);
        ASSERT_LT(thread, threads);
        ++runs[static_cast<size_t>(index)];
      });
      EXPECT_EQ(runs, std::vector<int>(static_cast<size_t>(count), 1));
    }
  }
}

TEST(ThreadPoolTest, WritesOfOneLoopAreSeenByTheNext) {
  ThreadPool pool(3);
  std::vector<int64_t> values(64);
  for (int round = 0; round < 2000; ++round) {
    pool.Run(64, [&](int64_t index, int) {
      const size_t from = static_cast<size_t>(63 - index);
      values[from] += 1 + values[from] % 2;
    });
  }
  for (int64_t value : values) EXPECT_EQ(value, values[0]);
}

TEST(ThreadPoolTest, WakesSleepingWorkers) {
  ThreadPool pool(2);
  for (int round = 0; round < 3; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::atomic<int> runs{0};
    pool.Run(100, [&](int64_t, int) { ++runs; });
    EXPECT_EQ(runs, 100);
  }
}

TEST(ThreadPoolTest, TakesTheCoresByDefault) { EXPECT_GE(ThreadPool(0).threads(), 1); }

}  // namespace
}  // namespace hippodrome::thread_pool_test
