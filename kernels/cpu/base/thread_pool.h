// The threads that do the arithmetic of all CPU backends that share them.
#ifndef HIPPODROME_KERNELS_CPU_BASE_THREAD_POOL_H_
#define HIPPODROME_KERNELS_CPU_BASE_THREAD_POOL_H_

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "kernels/cpu/base/round_robin_lock.h"
#include "kernels/ssm/head_loop.h"

namespace hippodrome {

// Runs loops over tasks on a fixed set of threads, the caller being one of them. Run() must be
// called from one thread at a time: those that share a pool call it within a Turn. Idle workers
// spin briefly, then sleep. Nobody waits for a worker that has not begun: on a busy machine a late
// worker finds its share done by the others.
class ThreadPool {
 public:
  // `threads` counts the caller; 0 means one per available core.
  explicit ThreadPool(int threads = 0);
  // A thread for each of `cores`, numbers of processors as the system has them, of which there is
  // at least one. Thread i stays on cores[i]. So does a caller, thread 0, from its first Run()
  // until LetGo() or its end; threads that it starts meanwhile are on that core too.
  explicit ThreadPool(std::vector<int> cores);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Gives the calling thread back the cores that it had before a pool bound it, if one did: for who
  // goes on with other things than arithmetic.
  static void LetGo();

  // Calls task(index, thread) once for each index in [0, count) and returns when all are done.
  // Threads take indices one after another, so that a slow core takes fewer; results must not
  // depend on which thread ran a task. thread is in [0, threads()). Throws what a task threw, the
  // first of several, when all that began are done; the rest is then left out.
  void Run(int64_t count, const std::function<void(int64_t index, int thread)>& task);
  // Run(), but each thread has a run of neighbours, so that what it reads lies in one stream and it
  // knows what comes next, and the same run in every loop, so that it finds what it wrote in its
  // cache; who is done takes from others' runs. What one throws stops its thread alone: the others
  // may run the rest.
  void RunNeighbours(int64_t count, const std::function<void(int64_t index)>& task);
  // Run() for what does not ask which thread runs it. Must not outlive the pool.
  HeadLoop Loop();

  // A client takes the pool whole for an operation, one loop or several. While several clients want
  // the pool, their threads stay on one core; the next turn that nobody else wants lets a thread
  // go, where the pool's threads are free to move.
  class Client {
   public:
    explicit Client(ThreadPool& pool) : pool_(pool), turns_(pool.turns_) {}

   private:
    friend class ThreadPool;
    ThreadPool& pool_;
    RoundRobinLock::Client turns_;
  };
  class Turn {
   public:
    explicit Turn(Client& client);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ThreadPool& pool() const { return client_.pool_; }
    operator ThreadPool&() const { return client_.pool_; }  // NOLINT(google-explicit-constructor)

   private:
    Client& client_;
  };

 private:
  void StartWorkers(int threads);
  void Work(int thread);
  // Runs tasks of the open loop until none is left to claim.
  void Drain(int thread);
  // Returns when all tasks of the open loop are done.
  void AwaitTasks();
  // Runs one claimed task; the first that throws is kept, and the tasks after it do nothing.
  void RunTask(int64_t index, int thread);

  const std::vector<int> cores_;  // empty: threads are where the system puts them
  RoundRobinLock turns_;
  int core_ = 0;  // of the caller in the last turn
  std::vector<std::thread> workers_;
  // The loop that is open, read after claiming one of its indices.
  const std::function<void(int64_t, int)>* task_ = nullptr;
  int64_t count_ = 0;
  // Number of the loop in the upper half, unclaimed indices in the lower one: an index is claimed
  // by counting down, which fails if the loop is not the one that was looked at.
  std::atomic<uint64_t> unclaimed_{0};
  std::atomic<uint32_t> done_{0};
  std::atomic<uint32_t> loops_{0};  // the same number, for sleepers
  std::atomic<bool> failed_{false};
  std::exception_ptr failure_;  // written by who set failed_, read when all tasks are done
  std::atomic<bool> stop_{false};
};

}  // namespace hippodrome

#endif  // HIPPODROME_KERNELS_CPU_BASE_THREAD_POOL_H_
