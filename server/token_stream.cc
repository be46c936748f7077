#include "server/token_stream.h"

#include <utility>

namespace hippodrome {

// The order matters: what is pushed before the check is seen by it, and what is pushed after it
// meets the new `wake`.
void TokenStream::OnUpdate(std::function<void()> wake) {
  std::lock_guard wake_lock(wake_mutex_);
  wake_ = std::move(wake);
  std::unique_lock lock(mutex_);
  const bool waiting = unread_.has_value();
  lock.unlock();
  if (waiting && wake_) wake_();
}

std::optional<StreamUpdate> TokenStream::Take() {
  std::lock_guard lock(mutex_);
  return std::exchange(unread_, std::nullopt);
}

bool TokenStream::Push(StreamUpdate update) {
  bool first;
  {
    std::lock_guard lock(mutex_);
    first = !unread_.has_value();
    if (first) {
      unread_ = std::move(update);
    } else {
      const auto unread = static_cast<int64_t>(unread_->token_ids.size() + update.token_ids.size());
      if (unread > max_unread_tokens_) return false;
      unread_->text += update.text;
      unread_->token_ids.insert(unread_->token_ids.end(), update.token_ids.begin(),
                                update.token_ids.end());
      unread_->finish = update.finish;
      unread_->completion_tokens = update.completion_tokens;
    }
    if (unread_->last()) ended_.store(true, std::memory_order_release);
  }
  if (first) Announce();
  return true;
}

void TokenStream::Fail(const absl::Status& status) {
  bool first;
  {
    std::lock_guard lock(mutex_);
    first = !unread_.has_value();
    if (first) unread_.emplace();
    unread_->status = status;
    ended_.store(true, std::memory_order_release);
  }
  if (first) Announce();
}

void TokenStream::Announce() {
  std::lock_guard lock(wake_mutex_);
  if (wake_) wake_();
}

}  // namespace hippodrome
