#include "server/http/large_body_queue.h"

#include <limits>
#include <utility>

namespace hippodrome {

void LargeBodyQueue::Stop() {
  std::map<int64_t, Work> dropped;  // destroyed without the lock
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    dropped = std::move(waiting_);
    waiting_.clear();
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

LargeBodyQueue::Ticket LargeBodyQueue::Submit(int64_t bytes, std::function<void()> work) {
  std::lock_guard lock(mutex_);
  const int64_t number = numbers_++;
  if (stopping_) return {*this, number};
  if (threads_.empty()) Start();
  const auto turn = Clock::now() + kWaitPerKilobyte * (bytes / 1024);
  waiting_.emplace(number, Work{turn, bytes, std::move(work)});
  changed_.notify_all();
  return {*this, number};
}

int64_t LargeBodyQueue::waiting() const {
  std::lock_guard lock(mutex_);
  return static_cast<int64_t>(waiting_.size());
}

void LargeBodyQueue::Start() {
  for (const int64_t most : {std::numeric_limits<int64_t>::max(), kMiddleBytes}) {
    threads_.emplace_back([this, most] { Serve(most); });
  }
}

// There are as many as the budget of bodies allows: a few hundred.
std::map<int64_t, LargeBodyQueue::Work>::iterator LargeBodyQueue::Next(int64_t most_bytes) {
  auto next = waiting_.end();
  for (auto work = waiting_.begin(); work != waiting_.end(); ++work) {
    if (work->second.bytes > most_bytes) continue;
    if (next == waiting_.end() || work->second.turn < next->second.turn) next = work;
  }
  return next;
}

void LargeBodyQueue::Serve(int64_t most_bytes) {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const auto next = Next(most_bytes);
    if (next == waiting_.end()) {
      changed_.wait(lock);
      continue;
    }
    std::function<void()> run = std::move(next->second.run);
    waiting_.erase(next);
    lock.unlock();
    run();
    run = nullptr;
    lock.lock();
  }
}

void LargeBodyQueue::Drop(int64_t number) {
  std::function<void()> dropped;  // destroyed without the lock
  std::lock_guard lock(mutex_);
  const auto work = waiting_.find(number);
  if (work == waiting_.end()) return;
  dropped = std::move(work->second.run);
  waiting_.erase(work);
}

}  // namespace hippodrome
