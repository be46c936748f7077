#include "kernels/cpu/base/round_robin_lock.h"

#include <algorithm>
#include <cassert>

namespace hippodrome {

bool RoundRobinLock::Lock(Client& client) {
  std::unique_lock<std::mutex> held(mutex_);
  if (owner_ == &client) {
    assert(!locked_);
    locked_ = true;
  } else if (owner_ == nullptr) {
    Grant(client);
  } else {
    if (waiting_.empty()) left_ = Clock::now();
    waiting_.push_back(&client);
    while (owner_ != &client) Wait(held, client);
    return true;
  }
  return !waiting_.empty();
}

void RoundRobinLock::Unlock() {
  const std::lock_guard<std::mutex> held(mutex_);
  locked_ = false;
  if (waiting_.empty()) return;
  left_ = Clock::now();
  if (left_ >= end_) GrantNext();
}

void RoundRobinLock::Leave(Client& client) {
  const std::lock_guard<std::mutex> held(mutex_);
  if (owner_ != &client) return;
  owner_ = nullptr;
  GrantNext();
}

void RoundRobinLock::Grant(Client& client) {
  owner_ = &client;
  locked_ = true;
  end_ = Clock::now() + slice_;
  client.changed_.notify_one();
  if (!waiting_.empty()) waiting_.front()->changed_.notify_one();
}

void RoundRobinLock::GrantNext() {
  if (waiting_.empty()) return;
  Client& next = *waiting_.front();
  waiting_.pop_front();
  Grant(next);
}

void RoundRobinLock::Wait(std::unique_lock<std::mutex>& held, Client& client) {
  if (waiting_.front() != &client) return client.changed_.wait(held);
  const Clock::time_point now = Clock::now();
  if (locked_) {
    // Unlock() changes nothing before the slice is over, but may be the owner's last.
    if (now >= end_) return client.changed_.wait(held);
    client.changed_.wait_until(held, std::min(end_, now + absence_));
  } else if (now < std::min(end_, left_ + absence_)) {
    client.changed_.wait_until(held, std::min(end_, left_ + absence_));
  } else {
    GrantNext();
  }
}

}  // namespace hippodrome
