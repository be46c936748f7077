// Where handlers run for large bodies, which may take seconds, so that they block nobody else.
#ifndef HIPPODROME_SERVER_HTTP_LARGE_BODY_QUEUE_H_
#define HIPPODROME_SERVER_HTTP_LARGE_BODY_QUEUE_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

namespace hippodrome {

// Two threads, one for bodies of up to a megabyte alone, so that a small one waits for no large
// one. Smaller bodies go first, but one of n megabytes is passed only by what comes within 4n
// seconds after it: nobody waits for ever. Thread-safe.
class LargeBodyQueue {
 public:
  using Clock = std::chrono::steady_clock;

  // By which a body's size is turned into waiting.
  static constexpr std::chrono::microseconds kWaitPerKilobyte{4000};
  static constexpr int64_t kMiddleBytes = int64_t{1} << 20;

  LargeBodyQueue() = default;
  ~LargeBodyQueue() { Stop(); }
  // Waits for what runs and drops the rest, and all that comes. Idempotent.
  void Stop();

  // Work that waits. Destroying it drops the work, unless it has begun.
  class Ticket {
   public:
    Ticket(LargeBodyQueue& queue, int64_t number) : queue_(queue), number_(number) {}
    ~Ticket() { queue_.Drop(number_); }
    Ticket(const Ticket&) = delete;
    Ticket& operator=(const Ticket&) = delete;

   private:
    LargeBodyQueue& queue_;
    const int64_t number_;
  };
  // `work` must not throw. It is destroyed once it has run or was dropped. The ticket must not
  // outlive the queue.
  [[nodiscard]] Ticket Submit(int64_t bytes, std::function<void()> work);

  int64_t waiting() const;

 private:
  struct Work {
    Clock::time_point turn;  // the earliest goes first
    int64_t bytes = 0;
    std::function<void()> run;
  };

  void Start();
  void Serve(int64_t most_bytes);
  std::map<int64_t, Work>::iterator Next(int64_t most_bytes);
  void Drop(int64_t number);

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::map<int64_t, Work> waiting_;  // by number
  int64_t numbers_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;  // none before the first work
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_HTTP_LARGE_BODY_QUEUE_H_
