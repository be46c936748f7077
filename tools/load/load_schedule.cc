#include "tools/load/load_schedule.h"

#include <algorithm>
#include <cmath>

namespace hippodrome {
namespace {

// A client of the closed loop that failed does not ask at once again: it would do nothing else.
constexpr std::chrono::milliseconds kPauseAfterFailure{100};

}  // namespace

double UniformDraw(std::mt19937_64& random) {
  return (static_cast<double>(random() >> 11) + 1) * 0x1p-53;
}

LoadSchedule::LoadSchedule(const LoadPlan& plan, Time begin)
    : plan_(plan), begin_(begin), random_(plan.seed), arrival_(begin) {
  if (plan_.rate > 0) {
    DrawArrival();
  } else {
    for (int64_t i = 0; i < plan_.concurrency; ++i) clients_.push(begin);
  }
}

void LoadSchedule::DrawArrival() {
  const std::chrono::duration<double> gap(-std::log(UniformDraw(random_)) / plan_.rate);
  arrival_ += std::chrono::duration_cast<LoadClock::duration>(gap);
}

bool LoadSchedule::Ends(Time due) const {
  if (plan_.requests > 0 && counted_ >= plan_.requests) return true;
  return plan_.duration > LoadClock::duration::zero() &&
         due >= begin_ + plan_.warm_up + plan_.duration;
}

std::optional<LoadSchedule::Time> LoadSchedule::NextNew(Time now) const {
  std::optional<Time> due;
  if (plan_.rate > 0) {
    due = arrival_;
  } else if (!clients_.empty()) {
    due = std::max(clients_.top(), now);
  }
  return due && !Ends(*due) ? due : std::nullopt;
}

std::optional<LoadSchedule::Time> LoadSchedule::Due(Time now) const {
  std::optional<Time> due = NextNew(now);
  if (!again_.empty() && (!due || again_.top().time < *due)) due = again_.top().time;
  return due;
}

LoadSchedule::Launch LoadSchedule::Take(Time now) {
  const std::optional<Time> due = NextNew(now);
  if (!again_.empty() && (!due || again_.top().time < *due)) {
    const int64_t index = again_.top().index;
    again_.pop();
    const Time intended = requests_[index].intended;
    return {.index = index,
            .intended = intended,
            .again = true,
            .counted = intended >= begin_ + plan_.warm_up};
  }
  return TakeNew(*due);
}

LoadSchedule::Launch LoadSchedule::TakeNew(Time due) {
  Launch launch{.index = static_cast<int64_t>(requests_.size()),
                .intended = due,
                .counted = due >= begin_ + plan_.warm_up};
  if (plan_.rate > 0) {
    launch.sent = outstanding_ < plan_.max_outstanding;
    DrawArrival();
  } else {
    clients_.pop();
  }
  requests_.push_back({due});
  if (launch.sent) ++outstanding_;
  if (launch.counted) ++counted_;
  return launch;
}

bool LoadSchedule::Ended(int64_t index, Time now, LoadOutcome outcome, int64_t retry_after) {
  Request& request = requests_[index];
  if (outcome == LoadOutcome::kRefused && request.attempts <= plan_.retries) {
    ++request.attempts;
    ++retried_;
    again_.push({now + std::chrono::seconds(retry_after), index});
    return true;
  }
  --outstanding_;
  if (plan_.rate == 0) {
    clients_.push(outcome == LoadOutcome::kFailed ? now + kPauseAfterFailure : now);
  }
  return false;
}

}  // namespace hippodrome
