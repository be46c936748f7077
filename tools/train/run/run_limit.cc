#include "tools/train/run/run_limit.h"

#include "tools/limits/machine.h"
#include "tools/train/step/step_limits.h"

namespace hippodrome {
namespace {

// Rows of the head: the published part of tokens that masked LM hides, one answer for a text, else
// all.
int64_t Answers(const TrainingRun& run) {
  const int64_t tokens = run.batch * run.length;
  switch (run.objective) {
    case Objective::kMaskedLm:
      return tokens * 15 / 100;
    case Objective::kClassification:
    case Objective::kRegression:
      return run.batch;
    default:
      return tokens;
  }
}

}  // namespace

double RunLimit(const TrainingRun& run, const ModelConfig& config, int64_t parameters) {
  const StepSize size = {.sequences = run.batch,
                         .length = run.length,
                         .answers = Answers(run),
                         .parameters = parameters};
  const Cost cost = std::visit([&](const auto& c) { return TrainingStepCost(c, size); }, config);
  return MostTokensPerSecond(cost, size, run.weights, MeasureCeilings(run.threads));
}

}  // namespace hippodrome
