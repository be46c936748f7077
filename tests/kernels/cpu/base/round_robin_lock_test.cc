#include "kernels/cpu/base/round_robin_lock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace hippodrome::round_robin_lock_test {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// Each of `clients` threads does `operations` operations and leaves the lock; returns who did each.
std::string Operate(RoundRobinLock& lock, int clients, int operations) {
  std::string order;
  std::atomic<bool> inside = false;
  const auto operate = [&](char name) {
    RoundRobinLock::Client client(lock);
    for (int i = 0; i < operations; ++i) {
      client.Lock();
      EXPECT_FALSE(inside.exchange(true));
      order += name;
      inside = false;
      client.Unlock();
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < clients; ++i) threads.emplace_back(operate, static_cast<char>('a' + i));
  for (std::thread& thread : threads) thread.join();
  return order;
}

TEST(RoundRobinLockTest, OperationsNeverOverlap) {
  RoundRobinLock lock(nanoseconds(1000), nanoseconds(500));
  EXPECT_EQ(Operate(lock, 4, 500).size(), 2000u);
}

TEST(RoundRobinLockTest, ASliceThatIsNotOverKeepsTheOthersOut) {
  RoundRobinLock lock(hours(1), hours(1));
  const std::string order = Operate(lock, 3, 100);
  for (size_t i = 0; i < order.size(); ++i) EXPECT_EQ(order[i], order[i / 100 * 100]) << i;
}

TEST(RoundRobinLockTest, ThoseThatWaitAreServedInTheOrderTheyCame) {
  RoundRobinLock lock(nanoseconds(0), hours(1));
  RoundRobinLock::Client first(lock);
  first.Lock();
  std::string order;
  std::vector<std::thread> waiting;
  std::atomic<int> arrived = 0;
  for (int i = 0; i < 3; ++i) {
    waiting.emplace_back([&, i] {
      RoundRobinLock::Client client(lock);
      ++arrived;
      client.Lock();
      order += static_cast<char>('a' + i);
      client.Unlock();
    });
    while (arrived != i + 1) std::this_thread::yield();
    // Between its arrival and its place in the queue there is nothing to be seen from here.
    std::this_thread::sleep_for(milliseconds(20));
  }
  first.Unlock();
  first.Lock();  // behind them
  order += 'f';
  first.Unlock();
  for (std::thread& thread : waiting) thread.join();
  EXPECT_EQ(order, "abcf");
}

TEST(RoundRobinLockTest, AClientThatStaysAwayLosesItsSlice) {
  for (const bool long_slice : {false, true}) {
    RoundRobinLock lock(long_slice ? nanoseconds(hours(1)) : nanoseconds(milliseconds(1)),
                        long_slice ? nanoseconds(milliseconds(1)) : nanoseconds(hours(1)));
    RoundRobinLock::Client away(lock);
    away.Lock();
    away.Unlock();
    RoundRobinLock::Client other(lock);
    other.Lock();  // returns
    other.Unlock();
  }
}

TEST(RoundRobinLockTest, AClientThatLeavesWhileOthersWaitLetsThemIn) {
  RoundRobinLock lock(hours(1), milliseconds(1));
  RoundRobinLock::Client first(lock);
  first.Lock();
  std::thread waiting([&] {
    RoundRobinLock::Client client(lock);
    client.Lock();  // returns
    client.Unlock();
  });
  std::this_thread::sleep_for(milliseconds(20));
  first.Unlock();  // and never again
  waiting.join();
}

TEST(RoundRobinLockTest, AClientThatGoesLeavesTheLockUsable) {
  RoundRobinLock lock(hours(1), hours(1));
  {
    RoundRobinLock::Client first(lock);
    first.Lock();
    first.Unlock();
  }
  RoundRobinLock::Client second(lock);
  second.Lock();  // returns
  second.Unlock();
}

}  // namespace
}  // namespace hippodrome::round_robin_lock_test
