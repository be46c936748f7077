// The learning rate over the steps of a run.
#ifndef HIPPODROME_TOOLS_TRAIN_RUN_SCHEDULE_H_
#define HIPPODROME_TOOLS_TRAIN_RUN_SCHEDULE_H_

#include <cstdint>

namespace hippodrome {

enum class ScheduleKind : uint8_t { kConstant, kLinear, kCosine };

struct Schedule {
  ScheduleKind kind = ScheduleKind::kConstant;
  int64_t warmup = 0;      // steps w
  double warmup_from = 0;  // rate r_0 of step 0, where there is a warm-up
  double floor = 0;        // f: the rate at the end as a fraction of the highest
};

// The rate of step t, counted from 0, in a run of T steps with the highest rate r:
//   t < w:     r_0 + (r - r_0) t / w
//   constant:  r
//   linear:    r (f + (1 - f) (T - t) / (T - w))
//   cosine:    r (f + (1 - f) (1 + cos(pi t / T)) / 2), over all steps: the warm-up hides its
//              beginning, as in the published runs of H3
// From step T on it stays at that of T. REQUIRES: t >= 0, T >= 1, w <= T.
double RateAt(const Schedule& schedule, double rate, int64_t steps, int64_t step);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TRAIN_RUN_SCHEDULE_H_
