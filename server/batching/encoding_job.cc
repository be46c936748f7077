#include "server/batching/encoding_job.h"

#include <utility>

namespace hippodrome {

EncodingJob::EncodingJob(EncodingCall call, Clock::time_point submitted)
    : call_(std::move(call)),
      submitted_(submitted),
      outputs_(call_.requests.size()),
      missing_(call_.requests.size()) {}

// The order matters: what becomes ready before the check is seen by it, and what becomes ready
// after it meets the new `wake`.
void EncodingJob::OnReady(std::function<void()> wake) {
  std::lock_guard wake_lock(wake_mutex_);
  wake_ = std::move(wake);
  std::unique_lock lock(mutex_);
  const bool ready = ready_;
  lock.unlock();
  if (!ready || !wake_) return;
  std::exchange(wake_, nullptr)();
}

std::optional<absl::StatusOr<std::vector<EncoderOutput>>> EncodingJob::Take() {
  std::lock_guard lock(mutex_);
  if (!ready_ || taken_) return std::nullopt;
  taken_ = true;
  if (!status_.ok()) return status_;
  return std::move(outputs_);
}

bool EncodingJob::complete() {
  std::lock_guard lock(mutex_);
  return missing_ == 0;
}

bool EncodingJob::Deliver(size_t index, EncoderOutput output) {
  {
    std::lock_guard lock(mutex_);
    if (ready_) return false;
    outputs_[index] = std::move(output);
    if (--missing_ > 0) return false;
    ready_ = true;
  }
  Announce();
  return true;
}

bool EncodingJob::Fail(const absl::Status& reason) {
  {
    std::lock_guard lock(mutex_);
    if (ready_) return false;
    ready_ = true;
    status_ = reason;
  }
  Announce();
  return true;
}

// `wake` runs once: whoever comes first, OnReady() or this, takes it.
void EncodingJob::Announce() {
  std::lock_guard lock(wake_mutex_);
  if (wake_) std::exchange(wake_, nullptr)();
}

}  // namespace hippodrome
