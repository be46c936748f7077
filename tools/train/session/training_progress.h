// How training gets on, for who watches.
#ifndef HIPPODROME_TOOLS_TRAIN_SESSION_TRAINING_PROGRESS_H_
#define HIPPODROME_TOOLS_TRAIN_SESSION_TRAINING_PROGRESS_H_

#include <chrono>
#include <cstdint>
#include <string>

#include "tools/command_line/progress.h"

namespace hippodrome {

struct TrainingPace {
  double loss = 0;
  double tokens_per_second = 0;
  double fraction_of_limit = 0;  // 0: unknown
};

// "loss 3.142, 12.3 k tokens/s, 45 % of the limit, 1:02:03 left". seconds_left < 0: unknown.
std::string DescribePace(const TrainingPace& pace, double seconds_left);

// A bar or lines on stderr, see tools/command_line/progress.h. Not thread-safe.
class TrainingProgress {
 public:
  // Of a run of `steps` steps that goes on after step `first`.
  TrainingProgress(int64_t first, int64_t steps);

  // After step `done`.
  void Update(int64_t done, const TrainingPace& pace);

 private:
  using Clock = std::chrono::steady_clock;

  int64_t first_;
  int64_t steps_;
  Clock::time_point start_;
  Progress progress_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TRAIN_SESSION_TRAINING_PROGRESS_H_
