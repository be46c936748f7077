#include "kernels/cpu/base/round_robin_lock.h"

#include <cassert>

namespace hippodrome {

void RoundRobinLock::Lock(Client& client) {
  std::unique_lock<std::mutex> held(mutex_);
  if (owner_ == &client) {
    assert(!locked_);
    locked_ = true;
  } else if (owner_ == nullptr) {
    Grant(client);
  } else {
    waiting_.push_back(&client);
    while (owner_ != &client) Sleep(held, client);
  }
}

void RoundRobinLock::Unlock() {
  const std::lock_guard<std::mutex> held(mutex_);
  locked_ = false;
  if (!waiting_.empty() && Clock::now() >= end_) GrantNext();
}

void RoundRobinLock::Yield(Client& client) {
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

void RoundRobinLock::Sleep(std::unique_lock<std::mutex>& held, Client& client) {
  if (waiting_.front() != &client) {
    client.changed_.wait(held);
  } else if (Clock::now() < end_) {
    client.changed_.wait_until(held, end_);
  } else if (locked_) {
    client.changed_.wait(held);  // Unlock() sees that the slice is over
  } else {
    GrantNext();
  }
}

}  // namespace hippodrome
