// Wakes the thread that waits for answers.
#ifndef HIPPODROME_SERVER_BATCHES_BELL_H_
#define HIPPODROME_SERVER_BATCHES_BELL_H_

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace hippodrome {

// Thread-safe.
class Bell {
 public:
  void Ring() {
    {
      const std::lock_guard lock(mutex_);
      rung_ = true;
    }
    wake_.notify_one();
  }
  // Returns when it is rung, at once if it was since the last time, or after `most`.
  void WaitFor(std::chrono::milliseconds most) {
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, most, [&] { return rung_; });
    rung_ = false;
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  bool rung_ = false;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_BATCHES_BELL_H_
