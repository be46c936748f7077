// The model that a run begins with.
#ifndef HIPPODROME_TOOLS_TRAIN_RUN_STARTING_MODEL_H_
#define HIPPODROME_TOOLS_TRAIN_RUN_STARTING_MODEL_H_

#include <memory>
#include <string>
#include <variant>

#include "absl/status/statusor.h"
#include "engine/config/bigs_config.h"
#include "engine/config/config.h"
#include "kernels/tape/parameters.h"
#include "kernels/tape/tape.h"
#include "tools/train/run/run_file.h"
#include "tools/train/step/decoder_trainee.h"
#include "tools/train/step/trainee.h"

namespace hippodrome {

using ModelConfig = std::variant<H3Config, BigsConfig>;

ModelFamily FamilyOf(const ModelConfig& config);

// The configuration of run.model: its own, or that of the directory it comes from, with the keys
// that it overrides and, for classes, the labels of run.data. Errors: of reading; kInvalidArgument
// for an objective that the model is not made for.
absl::StatusOr<ModelConfig> StartingConfig(const TrainingRun& run);

// Adds its parameters: those of the directory it comes from, where names and shapes agree, and else
// random ones; integers give their products with their scales; a position table that grows is
// continued. Errors: of reading; kInvalidArgument for a tensor of another shape.
absl::Status AddStartingParameters(const TrainingRun& run, const ModelConfig& config,
                                   Parameters& parameters);

// Loads it over `tape`.
absl::StatusOr<std::unique_ptr<Trainee>> MakeTrainee(const ModelConfig& config, DType weights,
                                                     const TraineeSize& size, Tape& tape,
                                                     Parameters& parameters);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TRAIN_RUN_STARTING_MODEL_H_
