#include "kernels/cpu/base/thread_pool.h"

#include <sched.h>

#include <cassert>
#include <chrono>
#include <utility>

namespace hippodrome {
namespace {

// A client that gets the pool finds the caches full of others' weights and states, which costs it
// a millisecond or two. Not longer than a prefill may stall streams.
constexpr std::chrono::milliseconds kSlice{50};
// Those that wait look so often whether the slice was left; between two steps is a fraction of it.
constexpr std::chrono::milliseconds kAbsence{2};

// Long enough to bridge the gap between two operations of a step, short enough not to burn a core
// that a server thread could use.
constexpr int kSpins = 4000;

int AvailableCores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(std::thread::hardware_concurrency());
}

// Keeps a thread on one core until it is let go.
class CoreBinding {
 public:
  void Bind(int core) {
    if (bound_) return;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    if (sched_getaffinity(0, sizeof(allowed_), &allowed_) != 0) return;
    bound_ = sched_setaffinity(0, sizeof(one), &one) == 0;
  }
  void Release() {
    if (!bound_) return;
    bound_ = false;
    sched_setaffinity(0, sizeof(allowed_), &allowed_);
  }

 private:
  bool bound_ = false;
  cpu_set_t allowed_;  // before it was bound
};

thread_local CoreBinding binding;

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

ThreadPool::ThreadPool(int threads) : turns_(kSlice, kAbsence) {
  // What a thread starts begins on its cores, and is not to stay on the one of another pool.
  LetGo();
  StartWorkers(threads > 0 ? threads : AvailableCores());
}

ThreadPool::ThreadPool(std::vector<int> cores)
    : cores_(std::move(cores)), turns_(kSlice, kAbsence) {
  assert(!cores_.empty());
  StartWorkers(static_cast<int>(cores_.size()));
}

void ThreadPool::StartWorkers(int threads) {
  for (int i = 1; i < threads; ++i) workers_.emplace_back([this, i] { Work(i); });
}

void ThreadPool::LetGo() { binding.Release(); }

ThreadPool::~ThreadPool() {
  stop_.store(true);
  loops_.fetch_add(1);
  loops_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

ThreadPool::Turn::Turn(Client& client) : client_(client) {
  const bool shared = client_.turns_.Lock();
  if (!client_.pool_.cores_.empty()) return;  // Run() binds
  // The core that the last caller leaves is free. A caller that wakes up elsewhere shares a core
  // with a worker, for milliseconds, until the scheduler sees it.
  if (shared) {
    binding.Bind(client_.pool_.core_);
  } else {
    binding.Release();
  }
}

ThreadPool::Turn::~Turn() {
  client_.pool_.core_ = sched_getcpu();
  client_.turns_.Unlock();
}

void ThreadPool::Run(int64_t count, const std::function<void(int64_t, int)>& task) {
  if (!cores_.empty()) binding.Bind(cores_.front());
  if (workers_.empty() || count <= 1) {
    for (int64_t i = 0; i < count; ++i) task(i, 0);
    return;
  }
  task_ = &task;
  count_ = count;
  done_.store(0, std::memory_order_relaxed);
  const uint64_t loop = loops_.load(std::memory_order_relaxed) + 1;
  unclaimed_.store(loop << 32 | static_cast<uint64_t>(count), std::memory_order_release);
  loops_.store(static_cast<uint32_t>(loop), std::memory_order_release);
  loops_.notify_all();
  Drain(0);
  AwaitTasks();
  if (failed_.exchange(false)) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void ThreadPool::RunNeighbours(int64_t count, const std::function<void(int64_t)>& task) {
  struct alignas(64) Neighbours {
    std::atomic<int64_t> next;
    int64_t end;
  };
  std::vector<Neighbours> runs(static_cast<size_t>(threads()));
  for (int64_t i = 0; i < threads(); ++i) {
    runs[i].next = count * i / threads();
    runs[i].end = count * (i + 1) / threads();
  }
  Run(threads(), [&](int64_t, int thread) {
    for (int64_t i = 0; i < threads(); ++i) {
      Neighbours& run = runs[(thread + i) % threads()];
      for (int64_t index = 0; (index = run.next.fetch_add(1)) < run.end;) task(index);
    }
  });
}

void ThreadPool::AwaitTasks() {
  const auto count = static_cast<uint32_t>(count_);
  int spins = 0;
  for (uint32_t done = 0; (done = done_.load(std::memory_order_acquire)) != count;) {
    if (++spins < kSpins) {
      Pause();
    } else {
      done_.wait(done, std::memory_order_acquire);
    }
  }
}

HeadLoop ThreadPool::Loop() {
  return [this](int64_t count, const std::function<void(int64_t)>& body) {
    Run(count, [&](int64_t index, int) { body(index); });
  };
}

void ThreadPool::Drain(int thread) {
  uint64_t seen = unclaimed_.load(std::memory_order_acquire);
  while ((seen & 0xffffffffu) != 0) {
    if (!unclaimed_.compare_exchange_weak(seen, seen - 1, std::memory_order_acq_rel,
                                          std::memory_order_acquire)) {
      continue;
    }
    // The loop cannot end before this task is done: what describes it stays.
    const auto count = static_cast<uint32_t>(count_);
    RunTask(count_ - static_cast<int64_t>(seen & 0xffffffffu), thread);
    if (done_.fetch_add(1) + 1 == count && thread != 0) done_.notify_one();
    seen = unclaimed_.load(std::memory_order_acquire);
  }
}

void ThreadPool::RunTask(int64_t index, int thread) {
  if (failed_.load(std::memory_order_relaxed)) return;
  try {
    (*task_)(index, thread);
  } catch (...) {
    if (!failed_.exchange(true)) failure_ = std::current_exception();
  }
}

void ThreadPool::Work(int thread) {
  if (!cores_.empty()) binding.Bind(cores_[static_cast<size_t>(thread)]);
  uint32_t seen = 0;
  for (;;) {
    for (int spins = 0; loops_.load(std::memory_order_acquire) == seen; ++spins) {
      if (spins < kSpins) {
        Pause();
      } else {
        loops_.wait(seen, std::memory_order_acquire);
      }
    }
    seen = loops_.load(std::memory_order_acquire);
    if (stop_.load(std::memory_order_acquire)) return;
    Drain(thread);
  }
}

}  // namespace hippodrome
