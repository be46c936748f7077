// The data that a run file names.
#ifndef HIPPODROME_TOOLS_TRAIN_RUN_RUN_DATA_H_
#define HIPPODROME_TOOLS_TRAIN_RUN_RUN_DATA_H_

#include <memory>

#include "absl/status/statusor.h"
#include "tools/train/data/training_batch.h"
#include "tools/train/run/run_file.h"
#include "tools/train/run/starting_model.h"

namespace hippodrome {

struct RunData {
  std::unique_ptr<TrainingData> train;  // in batches of run.batch, shuffled
  std::unique_ptr<TrainingData> valid;  // in batches of run.micro_batch, in order; or null
};

// Reads and prepares the data of `run` for the model. Errors: of reading; kInvalidArgument naming
// the file for data that is not of the objective, or has ids that the model lacks.
absl::StatusOr<RunData> ReadRunData(const TrainingRun& run, const ModelConfig& config);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TRAIN_RUN_RUN_DATA_H_
