#include "kernels/cpu/base/thread_pool.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <array>
#include <atomic>
#include <chrono>
#include <new>
#include <thread>
#include <vector>

#include "tests/testing/wait_until.h"

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

TEST(ThreadPoolTest, RunsNeighboursOnceAndThoseOfOthers) {
  for (int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    for (int64_t count : {0, 1, 2, 7, 1000}) {
      std::vector<int> runs(static_cast<size_t>(count));
      pool.RunNeighbours(count, [&](int64_t index) {
        // The first run is slow, so that its rest is taken by others.
        if (index == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
        ++runs[static_cast<size_t>(index)];
      });
      EXPECT_EQ(runs, std::vector<int>(static_cast<size_t>(count), 1));
    }
    const auto fail = [](int64_t index) {
      if (index == 3) throw std::bad_alloc();
    };
    EXPECT_THROW(pool.RunNeighbours(40, fail), std::bad_alloc);
  }
}

TEST(ThreadPoolTest, EachThreadBeginsWithItsOwnNeighbours) {
  ThreadPool pool(2);
  const std::thread::id caller = std::this_thread::get_id();
  for (int round = 0; round < 500; ++round) {
    std::atomic<int> begun{0};
    std::array<std::thread::id, 2> threads;
    pool.RunNeighbours(2, [&](int64_t index) {
      threads[static_cast<size_t>(index)] = std::this_thread::get_id();
      for (++begun; begun < 2;) std::this_thread::yield();  // so that nobody takes both
    });
    ASSERT_EQ(threads[0], caller) << round;
    ASSERT_NE(threads[1], caller) << round;
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

TEST(ThreadPoolTest, ThrowsWhatATaskThrewWhenNoneRunsAnyMore) {
  for (int threads : {1, 2, 4}) {
    ThreadPool pool(threads);
    for (int round = 0; round < 50; ++round) {
      std::atomic<int> running{0};
      const auto task = [&](int64_t index, int) {
        ++running;
        if (index % 3 == 2) {
          --running;
          throw std::bad_alloc();
        }
        std::this_thread::yield();
        --running;
      };
      EXPECT_THROW(pool.Run(40, task), std::bad_alloc);
      EXPECT_EQ(running, 0);
    }
    std::atomic<int> runs{0};
    pool.Run(40, [&](int64_t, int) { ++runs; });
    EXPECT_EQ(runs, 40);
  }
}

TEST(ThreadPoolTest, AClientHasThePoolWholeForAnOperationOfSeveralLoops) {
  ThreadPool pool(3);
  std::vector<int64_t> values(64);  // not atomic: operations must not overlap
  const auto operate = [&](int64_t times) {
    ThreadPool::Client client(pool);
    for (int64_t i = 0; i < times; ++i) {
      const ThreadPool::Turn turn(client);
      for (int loop = 0; loop < 2; ++loop) {
        turn.pool().Run(64, [&](int64_t index, int) { ++values[static_cast<size_t>(63 - index)]; });
      }
    }
  };
  std::vector<std::thread> clients;
  for (int i = 0; i < 3; ++i) clients.emplace_back(operate, 300);
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(values, std::vector<int64_t>(64, 1800));
}

cpu_set_t AllowedCores() {
  cpu_set_t cores;
  EXPECT_EQ(sched_getaffinity(0, sizeof(cores), &cores), 0);
  return cores;
}

TEST(ThreadPoolTest, ClientsShareACoreWhileSeveralWantThePool) {
  ThreadPool pool(2);
  const cpu_set_t before = AllowedCores();
  ThreadPool::Client client(pool);
  const auto operate = [&](ThreadPool::Client& some) {
    const ThreadPool::Turn turn(some);
    turn.pool().Run(8, [](int64_t, int) {});
    return AllowedCores();
  };
  std::atomic<bool> stop = false;
  std::thread other([&] {
    ThreadPool::Client wants(pool);
    while (!stop) operate(wants);
  });
  EXPECT_TRUE(WaitUntil([&] {
    const cpu_set_t now = operate(client);
    return CPU_COUNT(&now) == 1;
  }));
  stop = true;
  other.join();
  const cpu_set_t after = operate(client);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

std::vector<int> Numbers(const cpu_set_t& cores) {
  std::vector<int> numbers;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &cores)) numbers.push_back(core);
  }
  return numbers;
}

// The core that each thread of `pool` ran on, in a loop of which every thread has a task.
std::vector<int> CoresOf(ThreadPool& pool) {
  std::vector<int> cores(static_cast<size_t>(pool.threads()), -1);
  std::atomic<int> begun{0};
  pool.Run(pool.threads(), [&](int64_t, int thread) {
    ++begun;
    while (begun < pool.threads()) std::this_thread::yield();
    cores[static_cast<size_t>(thread)] = sched_getcpu();
  });
  return cores;
}

TEST(PinnedThreadPoolTest, ThreadsStayOnTheirCores) {
  const std::vector<int> allowed = Numbers(AllowedCores());
  // As many threads as cores, in the reverse order, and more threads than cores.
  std::vector<int> cores(allowed.rbegin(), allowed.rend());
  for (int round = 0; round < 2; ++round) {
    ThreadPool pool(cores);
    EXPECT_EQ(pool.threads(), static_cast<int>(cores.size()));
    for (int loop = 0; loop < 20; ++loop) {
      EXPECT_EQ(CoresOf(pool), cores);
      if (loop % 10 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    ThreadPool::LetGo();
    cores.push_back(allowed.front());
  }
}

TEST(PinnedThreadPoolTest, ComputesTheSame) {
  ThreadPool pool(std::vector<int>(3, Numbers(AllowedCores()).back()));
  std::vector<int> runs(1000);
  pool.Run(1000, [&](int64_t index, int) { ++runs[static_cast<size_t>(index)]; });
  EXPECT_EQ(runs, std::vector<int>(1000, 1));
  ThreadPool::LetGo();
}

TEST(PinnedThreadPoolTest, ACallerStaysUntilItIsLetGo) {
  const cpu_set_t before = AllowedCores();
  const int core = Numbers(before).back();
  ThreadPool pool(std::vector<int>{core});
  cpu_set_t now = AllowedCores();
  EXPECT_TRUE(CPU_EQUAL(&before, &now));
  pool.Run(1, [](int64_t, int) {});
  EXPECT_EQ(Numbers(AllowedCores()), std::vector<int>{core});
  {
    // A turn that nobody else wants lets a thread go, but not here.
    ThreadPool::Client client(pool);
    const ThreadPool::Turn turn(client);
    EXPECT_EQ(Numbers(AllowedCores()), std::vector<int>{core});
  }
  ThreadPool::LetGo();
  now = AllowedCores();
  EXPECT_TRUE(CPU_EQUAL(&before, &now));
  ThreadPool::LetGo();  // nothing
  pool.Run(1, [](int64_t, int) {});
  EXPECT_EQ(Numbers(AllowedCores()), std::vector<int>{core});
  ThreadPool::LetGo();
}

TEST(PinnedThreadPoolTest, AnotherPoolOfABoundThreadIsFree) {
  const cpu_set_t before = AllowedCores();
  ThreadPool pinned(std::vector<int>{Numbers(before).front()});
  pinned.Run(1, [](int64_t, int) {});
  ThreadPool free(0);
  EXPECT_EQ(free.threads(), CPU_COUNT(&before));
  free.Run(8, [&](int64_t, int) {
    const cpu_set_t now = AllowedCores();
    EXPECT_TRUE(CPU_EQUAL(&before, &now));
  });
}

TEST(PinnedThreadPoolTest, ClientsShareTheFirstCore) {
  const int core = Numbers(AllowedCores()).back();
  ThreadPool pool(std::vector<int>{core});
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      ThreadPool::Client client(pool);
      for (int operation = 0; operation < 100; ++operation) {
        const ThreadPool::Turn turn(client);
        turn.pool().Run(2, [&](int64_t, int) { EXPECT_EQ(sched_getcpu(), core); });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(ThreadPoolTest, TakesTheCoresByDefault) { EXPECT_GE(ThreadPool(0).threads(), 1); }

}  // namespace
}  // namespace hippodrome::thread_pool_test
