// The memory that the bodies of a listener's requests may take together.
#ifndef HIPPODROME_SERVER_HTTP_BODY_BUDGET_H_
#define HIPPODROME_SERVER_HTTP_BODY_BUDGET_H_

#include <atomic>
#include <cstdint>
#include <utility>

#include "server/metrics/http_metrics.h"

namespace hippodrome {

// Up to so much a body is always taken: whoever fills the budget does not lock out those who send
// little. As many connections as there may be bound what this takes.
constexpr int64_t kSmallBodyBytes = int64_t{64} << 10;

// Thread-safe.
class BodyBudget {
 public:
  // `metrics` must outlive the budget.
  BodyBudget(int64_t bytes, HttpMetrics& metrics) : bytes_(bytes), metrics_(metrics) {}

  int64_t bytes() const { return bytes_; }
  // Whether a body of `bytes` could be taken now.
  bool HasRoom(int64_t bytes) const {
    return bytes <= kSmallBodyBytes || used_.load() + bytes <= bytes_;
  }

 private:
  friend class BodyReservation;

  // One body grows or shrinks. False, and nothing has changed, where it may not grow.
  bool Change(int64_t from, int64_t to) {
    const int64_t used = used_.fetch_add(to - from) + to - from;
    if (to > from && to > kSmallBodyBytes && used > bytes_) {
      used_.fetch_sub(to - from);
      return false;
    }
    metrics_.BodyBytes(to - from);
    return true;
  }

  const int64_t bytes_;
  HttpMetrics& metrics_;
  std::atomic<int64_t> used_ = 0;
};

// What one body takes of the budget, until it is destroyed. Not thread-safe.
class BodyReservation {
 public:
  // `budget` must outlive the reservation.
  explicit BodyReservation(BodyBudget& budget) : budget_(&budget) {}
  BodyReservation(BodyReservation&& other) noexcept
      : budget_(other.budget_), bytes_(std::exchange(other.bytes_, 0)) {}
  BodyReservation& operator=(BodyReservation&&) = delete;
  ~BodyReservation() { Resize(0); }

  int64_t bytes() const { return bytes_; }
  // False, and nothing has changed, beyond the budget.
  bool Resize(int64_t bytes) {
    if (bytes == bytes_) return true;
    if (!budget_->Change(bytes_, bytes)) return false;
    bytes_ = bytes;
    return true;
  }

 private:
  BodyBudget* budget_;
  int64_t bytes_ = 0;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_HTTP_BODY_BUDGET_H_
