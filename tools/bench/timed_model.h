// A model whose work is timed in rounds, in turns with other models.
#ifndef HIPPODROME_TOOLS_BENCH_TIMED_MODEL_H_
#define HIPPODROME_TOOLS_BENCH_TIMED_MODEL_H_

#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/bench/bench_report.h"
#include "tools/limits/device_ceilings.h"
#include "tools/limits/machine.h"

namespace hippodrome {

class TimedModel {
 public:
  virtual ~TimedModel() = default;
  // Does each of works() once, and notes its time there.
  virtual absl::Status RunRound() = 0;
  virtual const std::vector<TimedWork>& works() const = 0;
};

// So many rounds, each of the ceilings first and then of every model, so that all of them meet the
// same noise of the machine. The best of the ceilings. Errors: of a round.
absl::StatusOr<Ceilings> RunRounds(Machine& machine, std::span<TimedModel* const> models,
                                   int rounds);
// The same with the ceilings before every model of every round. Their medians, for figures that are
// medians of rounds.
absl::StatusOr<Ceilings> RunTurns(Machine& machine, std::span<TimedModel* const> models,
                                  int rounds);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_BENCH_TIMED_MODEL_H_
