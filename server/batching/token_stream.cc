#include "server/batching/token_stream.h"

#include <algorithm>
#include <utility>

namespace hippodrome {

// The order matters: what is pushed before the check is seen by it, and what is pushed after it
// meets the new `wake`.
void TokenStream::OnUpdate(std::function<void()> wake, int64_t tokens) {
  std::lock_guard wake_lock(wake_mutex_);
  wake_ = std::move(wake);
  std::unique_lock lock(mutex_);
  wake_tokens_ = std::min(tokens, max_unread_tokens_);
  const bool due = Due();
  lock.unlock();
  if (due && wake_) wake_();
}

std::optional<StreamUpdate> TokenStream::Take() {
  std::lock_guard lock(mutex_);
  if (unread_.empty()) return std::nullopt;
  StreamUpdate update = std::move(unread_.front());
  unread_.pop_front();
  unread_tokens_ -= static_cast<int64_t>(update.token_ids.size());
  return update;
}

bool TokenStream::Push(StreamUpdate update) {
  {
    std::lock_guard lock(mutex_);
    const auto tokens = static_cast<int64_t>(update.token_ids.size());
    if (unread_tokens_ + tokens > max_unread_tokens_) return false;
  }
  if (Append(std::move(update))) Announce();
  return true;
}

void TokenStream::Fail(const absl::Status& status) {
  StreamUpdate update;
  update.status = status;
  Append(std::move(update));
  // Although it may have been due: what failed may be the call that was to say so.
  Announce();
}

bool TokenStream::Append(StreamUpdate update) {
  const auto tokens = static_cast<int64_t>(update.token_ids.size());
  const bool last = update.last();
  std::lock_guard lock(mutex_);
  const bool was_due = Due();
  unread_.push_back(std::move(update));  // or throws, and nothing has changed
  unread_tokens_ += tokens;
  if (last) ended_.store(true, std::memory_order_release);
  return !was_due && Due();
}

bool TokenStream::Due() const {
  const bool last = !unread_.empty() && unread_.back().last();
  return last || unread_tokens_ >= wake_tokens_;
}

void TokenStream::Announce() {
  std::lock_guard lock(wake_mutex_);
  if (wake_) wake_();
}

}  // namespace hippodrome
