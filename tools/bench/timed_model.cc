#include "tools/bench/timed_model.h"

#include <vector>

#include "engine/base/status.h"

namespace hippodrome {

absl::StatusOr<Ceilings> RunRounds(Machine& machine, std::span<TimedModel* const> models,
                                   int rounds) {
  Ceilings best;
  for (int round = 0; round < rounds; ++round) {
    best = BetterOf(best, machine.measure_ceilings(OfRuns::kBest));
    for (TimedModel* model : models) HIPPODROME_RETURN_IF_ERROR(model->RunRound());
  }
  return best;
}

absl::StatusOr<Ceilings> RunTurns(Machine& machine, std::span<TimedModel* const> models,
                                  int rounds) {
  std::vector<Ceilings> ceilings;
  for (int round = 0; round < rounds; ++round) {
    for (TimedModel* model : models) {
      ceilings.push_back(machine.measure_ceilings(OfRuns::kMedian));
      HIPPODROME_RETURN_IF_ERROR(model->RunRound());
    }
  }
  return MedianOf(ceilings);
}

}  // namespace hippodrome
