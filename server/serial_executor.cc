#include "server/serial_executor.h"

#include <utility>

namespace hippodrome {

SerialExecutor::~SerialExecutor() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void SerialExecutor::Post(std::function<void()> job) {
  bool first;
  {
    std::lock_guard lock(mutex_);
    first = jobs_.empty();
    jobs_.push_back(std::move(job));
  }
  if (first) wake_.notify_one();
}

void SerialExecutor::Loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    std::vector<std::function<void()>> jobs = std::exchange(jobs_, {});
    lock.unlock();
    for (const auto& job : jobs) job();
    jobs.clear();
    lock.lock();
  }
}

}  // namespace hippodrome
