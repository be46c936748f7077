#include "tools/train/session/training_progress.h"

#include <fmt/format.h>

#include <cmath>

namespace hippodrome {
namespace {

// "950", "12.3 k", "1.20 M".
std::string ShortNumber(double value) {
  if (value >= 1e6) return fmt::format("{:.2f} M", value / 1e6);
  if (value >= 1e4) return fmt::format("{:.1f} k", value / 1e3);
  return fmt::format("{:.0f}", value);
}

// "2:03", "1:02:03".
std::string HoursMinutesSeconds(double seconds) {
  const int64_t all = std::llround(seconds);
  const int64_t hours = all / 3600, minutes = all / 60 % 60;
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, all % 60);
  return fmt::format("{}:{:02}", minutes, all % 60);
}

}  // namespace

std::string DescribePace(const TrainingPace& pace, double seconds_left) {
  std::string text =
      fmt::format("loss {:.3f}, {} tokens/s", pace.loss, ShortNumber(pace.tokens_per_second));
  if (pace.fraction_of_limit > 0) {
    text += fmt::format(", {:.0f} % of the limit", 100 * pace.fraction_of_limit);
  }
  if (seconds_left >= 0) text += fmt::format(", {} left", HoursMinutesSeconds(seconds_left));
  return text;
}

TrainingProgress::TrainingProgress(int64_t first, int64_t steps)
    : first_(first), steps_(steps), start_(Clock::now()), progress_("training") {}

void TrainingProgress::Update(int64_t done, const TrainingPace& pace) {
  const double passed = std::chrono::duration<double>(Clock::now() - start_).count();
  const auto steps = static_cast<double>(done - first_);
  const auto left = static_cast<double>(steps_ - done);
  progress_.Update(done, steps_, DescribePace(pace, steps > 0 ? passed / steps * left : -1));
}

}  // namespace hippodrome
