// Who of several clients may use what they share: each in turn, for a slice of time.
#ifndef HIPPODROME_KERNELS_CPU_BASE_ROUND_ROBIN_LOCK_H_
#define HIPPODROME_KERNELS_CPU_BASE_ROUND_ROBIN_LOCK_H_

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>

namespace hippodrome {

// A mutual exclusion of operations. While others wait, a client goes on from one operation to its
// next until its slice is over: what it works on is in the caches then. Then the one that has
// waited longest has its slice. A client that stays away between two operations loses the rest of
// its slice. Those that wait sleep.
class RoundRobinLock {
 public:
  // `absence`: how long a client may stay away, about.
  RoundRobinLock(std::chrono::nanoseconds slice, std::chrono::nanoseconds absence)
      : slice_(slice), absence_(absence) {}

  // One that takes turns. Its calls must not overlap, and it must be unlocked when it goes.
  class Client {
   public:
    explicit Client(RoundRobinLock& lock) : lock_(lock) {}
    ~Client() { lock_.Leave(*this); }
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;

    // Around an operation, which no other client's overlaps. Lock() returns whether others want it
    // too: it waited for them, or they wait now.
    bool Lock() { return lock_.Lock(*this); }
    void Unlock() { lock_.Unlock(); }

   private:
    friend class RoundRobinLock;
    RoundRobinLock& lock_;
    std::condition_variable changed_;
  };

 private:
  using Clock = std::chrono::steady_clock;

  bool Lock(Client& client);
  void Unlock();
  void Leave(Client& client);
  // Gives `client`, which is in Lock(), a slice. The next in line then has another end to wait for.
  void Grant(Client& client);
  // Gives the next in line, if any, a slice.
  void GrantNext();
  // Waits for a while, and takes the slice of an owner that stays away.
  void Wait(std::unique_lock<std::mutex>& held, Client& client);

  const std::chrono::nanoseconds slice_;
  const std::chrono::nanoseconds absence_;
  std::mutex mutex_;
  Client* owner_ = nullptr;  // of the slice
  bool locked_ = false;      // the owner is in an operation
  Clock::time_point end_;    // of the slice
  Clock::time_point left_;   // since when it is not locked, if others wait
  std::deque<Client*> waiting_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_KERNELS_CPU_BASE_ROUND_ROBIN_LOCK_H_
