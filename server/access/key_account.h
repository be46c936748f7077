// What the calls of one API key hold, within its limits.
#ifndef HIPPODROME_SERVER_ACCESS_KEY_ACCOUNT_H_
#define HIPPODROME_SERVER_ACCESS_KEY_ACCOUNT_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/access/key_file.h"
#include "server/batching/allowance.h"
#include "server/metrics/key_metrics.h"

namespace hippodrome {

class CallPermit;

// Whether somebody waits for a call. Of what limits allow, calls in the background leave the half
// to those that somebody waits for.
enum class CallKind : uint8_t { kAwaited, kBackground };

// Held by shared_ptr. Thread-safe.
class KeyAccount : public std::enable_shared_from_this<KeyAccount> {
 public:
  using Clock = std::chrono::steady_clock;

  // `metrics` must outlive it. Starts with a full burst.
  KeyAccount(const ApiKey& key, Metrics& metrics, Clock::time_point now);

  const std::string& name() const { return name_; }
  KeyMetrics& metrics() { return metrics_; }

  // The key as it is in the file now, with the same name. What its calls hold stays, and so does
  // what is left of its burst, up to the new one.
  void Configure(const ApiKey& key, Clock::time_point now);

  // A call begins. Errors: kResourceExhausted, as LimitError(), for one too many in a minute, or at
  // once. What refuses one in the background is counted nowhere: it comes again.
  absl::StatusOr<std::shared_ptr<CallPermit>> Enter(Clock::time_point now,
                                                    CallKind kind = CallKind::kAwaited);

 private:
  friend class CallPermit;

  struct Held {
    int64_t calls = 0;
    int64_t tokens = 0;
    int64_t bytes = 0;
  };

  // mutex_ is held in these.
  void Refill(Clock::time_point now);
  absl::Status Refuse(KeyRefusal why, CallKind kind, const std::string& message, int seconds);
  absl::Status CheckReserve(const Held& own, CallKind kind, int64_t tokens, int64_t bytes);
  void Show() { metrics_.SetHeld(held_.calls, held_.tokens, held_.bytes); }

  const std::string name_;
  KeyMetrics metrics_;

  std::mutex mutex_;  // guards all below
  KeyLimits limits_;
  std::optional<std::vector<std::string>> models_;
  Held held_;
  double left_ = 0;  // of the burst, as of refilled_
  Clock::time_point refilled_;
};

// One call. What it holds is free again with the destructor, which comes before the last byte of
// the answer, so that a client which has that finds room for its next call. Thread-safe.
class CallPermit : public Allowance {
 public:
  // For KeyAccount::Enter() alone.
  CallPermit(std::shared_ptr<KeyAccount> account, CallKind kind)
      : account_(std::move(account)), kind_(kind) {}
  ~CallPermit() override;
  CallPermit(const CallPermit&) = delete;
  CallPermit& operator=(const CallPermit&) = delete;

  const std::string& key() const { return account_->name(); }

  // The server did not take the call, which comes again: no rate counts it.
  void TakeBack();
  absl::Status MayRun(const std::string& model) override;
  absl::Status Reserve(int64_t tokens, int64_t bytes) override;

 private:
  friend class KeyAccount;

  const std::shared_ptr<KeyAccount> account_;
  const CallKind kind_;
  KeyAccount::Held own_;  // guarded by the account's mutex
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_ACCESS_KEY_ACCOUNT_H_
