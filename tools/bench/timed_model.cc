#include "tools/bench/timed_model.h"

#include "engine/base/status.h"

namespace hippodrome {

absl::StatusOr<Ceilings> RunRounds(Machine& machine, std::span<TimedModel* const> models,
                                   int rounds) {
  Ceilings best;
  for (int round = 0; round < rounds; ++round) {
    best = BetterOf(best, machine.measure_ceilings());
    for (TimedModel* model : models) HIPPODROME_RETURN_IF_ERROR(model->RunRound());
  }
  return best;
}

}  // namespace hippodrome
