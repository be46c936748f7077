#include "tools/train/run/schedule.h"

#include <cmath>
#include <numbers>

namespace hippodrome {
namespace {

// From 1 at the highest rate to 0 at the floor.
double Remaining(const Schedule& schedule, int64_t steps, int64_t step) {
  if (schedule.kind == ScheduleKind::kConstant) return 1;
  if (step >= steps) return 0;
  const auto done = static_cast<double>(step);
  const auto all = static_cast<double>(steps);
  if (schedule.kind == ScheduleKind::kCosine) {
    return (1 + std::cos(std::numbers::pi * done / all)) / 2;
  }
  return (all - done) / (all - static_cast<double>(schedule.warmup));
}

}  // namespace

double RateAt(const Schedule& schedule, double rate, int64_t steps, int64_t step) {
  if (step < schedule.warmup) {
    const double part = static_cast<double>(step) / static_cast<double>(schedule.warmup);
    return schedule.warmup_from + (rate - schedule.warmup_from) * part;
  }
  return rate * (schedule.floor + (1 - schedule.floor) * Remaining(schedule, steps, step));
}

}  // namespace hippodrome
