// A thread that runs small jobs in order, for those who must not run them themselves.
#ifndef HIPPODROME_SERVER_SERIAL_EXECUTOR_H_
#define HIPPODROME_SERVER_SERIAL_EXECUTOR_H_

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace hippodrome {

// Thread-safe.
class SerialExecutor {
 public:
  SerialExecutor() : thread_([this] { Loop(); }) {}
  // Runs what was posted, then ends.
  ~SerialExecutor();

  void Post(std::function<void()> job);

 private:
  void Loop();

  std::mutex mutex_;  // guards jobs_ and stopping_
  std::condition_variable wake_;
  std::vector<std::function<void()>> jobs_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_SERIAL_EXECUTOR_H_
