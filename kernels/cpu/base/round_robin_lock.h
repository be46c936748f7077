// Who of several clients may use what they share: each in turn, for a slice of time.
#ifndef HIPPODROME_KERNELS_CPU_BASE_ROUND_ROBIN_LOCK_H_
#define HIPPODROME_KERNELS_CPU_BASE_ROUND_ROBIN_LOCK_H_

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>

namespace hippodrome {

// A mutual exclusion of operations. While others wait, a client goes on from one operation to its
// next until its slice is over, for to change after each would cost more than short operations
// themselves; then the one that has waited longest has its slice. A client that stays away between
// two operations loses what is left of its slice at its end at the latest. Those that wait sleep.
class RoundRobinLock {
 public:
  explicit RoundRobinLock(std::chrono::nanoseconds slice) : slice_(slice) {}

  // One that takes turns. Its calls must not overlap, and it must be unlocked when it goes.
  class Client {
   public:
    explicit Client(RoundRobinLock& lock) : lock_(lock) {}
    ~Client() { Yield(); }
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;

    // Around an operation, which no other client's overlaps.
    void Lock() { lock_.Lock(*this); }
    void Unlock() { lock_.Unlock(); }
    // Gives up what is left of the slice: other work comes before the next operation.
    void Yield() { lock_.Yield(*this); }

   private:
    friend class RoundRobinLock;
    RoundRobinLock& lock_;
    std::condition_variable changed_;
  };

 private:
  using Clock = std::chrono::steady_clock;

  void Lock(Client& client);
  void Unlock();
  void Yield(Client& client);
  // Gives `client`, which is in Lock(), a slice. The next in line then has another end to wait for.
  void Grant(Client& client);
  // Gives the next in line, if any, a slice.
  void GrantNext();
  // Sleeps until something changes, or until the slice may be taken away.
  void Sleep(std::unique_lock<std::mutex>& held, Client& client);

  const std::chrono::nanoseconds slice_;
  std::mutex mutex_;
  Client* owner_ = nullptr;  // of the slice
  bool locked_ = false;      // the owner is in an operation
  Clock::time_point end_;    // of the slice
  std::deque<Client*> waiting_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_KERNELS_CPU_BASE_ROUND_ROBIN_LOCK_H_
