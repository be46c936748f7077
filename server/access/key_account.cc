#include "server/access/key_account.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "engine/base/status.h"
#include "server/status_map.h"

namespace hippodrome {
namespace {

constexpr double kMostSeconds = 3600;

// Where the file says none: what ten seconds bring.
double Burst(const KeyLimits& limits) {
  if (limits.burst) return static_cast<double>(*limits.burst);
  return std::max(1.0, static_cast<double>(limits.requests_per_minute.value_or(0)) / 6);
}

// Neither is negative.
int64_t Sum(int64_t a, int64_t b) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  return a > kMost - b ? kMost : a + b;
}

// What a call of that kind may take of `limit`; `own` of it in any case.
int64_t MostOf(int64_t limit, CallKind kind, int64_t own) {
  return kind == CallKind::kAwaited ? limit : std::max(own, limit / 2);
}

absl::Status TooLarge(const char* what, int64_t wanted, int64_t limit) {
  return absl::OutOfRangeError(
      fmt::format("the call reserves {} {}, and its key may reserve {}", wanted, what, limit));
}

std::string Full(const char* what, int64_t held, int64_t limit) {
  return fmt::format("the calls of this key reserve {} of {} {}: try again when some have ended",
                     held, limit, what);
}

}  // namespace

KeyAccount::KeyAccount(const ApiKey& key, Metrics& metrics, Clock::time_point now)
    : name_(key.name),
      metrics_(metrics, key.name),
      limits_(key.limits),
      models_(key.models),
      left_(Burst(key.limits)),
      refilled_(now) {}

void KeyAccount::Configure(const ApiKey& key, Clock::time_point now) {
  std::lock_guard lock(mutex_);
  Refill(now);
  const bool had_rate = limits_.requests_per_minute.has_value();
  limits_ = key.limits;
  models_ = key.models;
  left_ = had_rate ? std::min(left_, Burst(limits_)) : Burst(limits_);
}

void KeyAccount::Refill(Clock::time_point now) {
  if (!limits_.requests_per_minute || now <= refilled_) return;
  const double minutes = std::chrono::duration<double, std::ratio<60>>(now - refilled_).count();
  const double came = minutes * static_cast<double>(*limits_.requests_per_minute);
  left_ = std::min(left_ + came, Burst(limits_));
  refilled_ = now;
}

absl::Status KeyAccount::Refuse(KeyRefusal why, CallKind kind, const std::string& message,
                                int seconds) {
  if (kind == CallKind::kAwaited) metrics_.Refused(why);
  return LimitError(message, seconds);
}

absl::StatusOr<std::shared_ptr<CallPermit>> KeyAccount::Enter(Clock::time_point now,
                                                              CallKind kind) {
  auto permit = std::make_shared<CallPermit>(shared_from_this(), kind);
  std::lock_guard lock(mutex_);
  if (limits_.calls && held_.calls >= MostOf(*limits_.calls, kind, 1)) {
    return Refuse(KeyRefusal::kCalls, kind,
                  fmt::format("this key may have {} calls at once, and has them", *limits_.calls),
                  1);
  }
  if (limits_.requests_per_minute) {
    Refill(now);
    const double least = kind == CallKind::kAwaited ? 1 : std::max(1.0, Burst(limits_) / 2);
    if (left_ < least) {
      const double wait = (least - left_) * 60 / static_cast<double>(*limits_.requests_per_minute);
      return Refuse(
          KeyRefusal::kRate, kind,
          fmt::format("this key may make {} calls in a minute", *limits_.requests_per_minute),
          static_cast<int>(std::clamp(std::ceil(wait), 1.0, kMostSeconds)));
    }
    left_ -= 1;
  }
  permit->own_.calls = 1;
  ++held_.calls;
  metrics_.Admitted();
  Show();
  return permit;
}

absl::Status KeyAccount::CheckReserve(const Held& own, CallKind kind, int64_t tokens,
                                      int64_t bytes) {
  const int64_t own_tokens = Sum(own.tokens, tokens);
  const int64_t own_bytes = Sum(own.bytes, bytes);
  if (limits_.tokens && own_tokens > *limits_.tokens) {
    metrics_.Refused(KeyRefusal::kTokens);
    return TooLarge("tokens", own_tokens, *limits_.tokens);
  }
  if (limits_.bytes && own_bytes > *limits_.bytes) {
    metrics_.Refused(KeyRefusal::kBytes);
    return TooLarge("bytes", own_bytes, *limits_.bytes);
  }
  if (limits_.tokens && Sum(held_.tokens, tokens) > MostOf(*limits_.tokens, kind, own_tokens)) {
    return Refuse(KeyRefusal::kTokens, kind, Full("tokens", held_.tokens, *limits_.tokens), 1);
  }
  if (limits_.bytes && Sum(held_.bytes, bytes) > MostOf(*limits_.bytes, kind, own_bytes)) {
    return Refuse(KeyRefusal::kBytes, kind, Full("bytes", held_.bytes, *limits_.bytes), 1);
  }
  return absl::OkStatus();
}

void CallPermit::TakeBack() {
  std::lock_guard lock(account_->mutex_);
  account_->left_ = std::min(account_->left_ + 1, Burst(account_->limits_));
}

absl::Status CallPermit::MayRun(const std::string& model) {
  std::lock_guard lock(account_->mutex_);
  const auto& models = account_->models_;
  if (!models || std::find(models->begin(), models->end(), model) != models->end()) {
    return absl::OkStatus();
  }
  account_->metrics_.Refused(KeyRefusal::kModel);
  return absl::PermissionDeniedError("this key may not run the model '" + model + "'");
}

absl::Status CallPermit::Reserve(int64_t tokens, int64_t bytes) {
  std::lock_guard lock(account_->mutex_);
  HIPPODROME_RETURN_IF_ERROR(account_->CheckReserve(own_, kind_, tokens, bytes));
  // Without limits, sums may reach the end of the type: then no more is counted.
  tokens = Sum(account_->held_.tokens, tokens) - account_->held_.tokens;
  bytes = Sum(account_->held_.bytes, bytes) - account_->held_.bytes;
  own_.tokens += tokens;
  own_.bytes += bytes;
  account_->held_.tokens += tokens;
  account_->held_.bytes += bytes;
  account_->Show();
  return absl::OkStatus();
}

CallPermit::~CallPermit() {
  std::lock_guard lock(account_->mutex_);
  account_->held_.calls -= own_.calls;
  account_->held_.tokens -= own_.tokens;
  account_->held_.bytes -= own_.bytes;
  account_->Show();
}

}  // namespace hippodrome
