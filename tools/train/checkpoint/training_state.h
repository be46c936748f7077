// Checkpoints from which training goes on as if it had never stopped.
//
// OUT/checkpoints/step-N/state.safetensors: the arrays, F32.
// OUT/checkpoints/step-N/state.json:
//   {"checksum": "..",  of the text of "state", as nlohmann::json dumps it without spaces
//    "state": {"step": N, "tokens": n, "batch": n, "seconds": x, "fingerprint": "..",
//              "best": {"step": n, "figure": x, "evaluations_since": n},
//              "arrays": {"NAME": "checksum of its bytes", ..}}}
#ifndef HIPPODROME_TOOLS_TRAIN_CHECKPOINT_TRAINING_STATE_H_
#define HIPPODROME_TOOLS_TRAIN_CHECKPOINT_TRAINING_STATE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/checkpoint/safetensors.h"

namespace hippodrome {

// The best of a run's evaluations so far.
struct BestEvaluation {
  int64_t step = 0;               // steps done then
  double figure = 0;              // finite; higher is better
  int64_t evaluations_since = 0;  // none of them better
};

// Where training stands, between two steps.
struct TrainingPosition {
  int64_t step = 0;                    // steps done
  int64_t tokens = 0;                  // trained on
  int64_t batch = 0;                   // index of the next batch of the data
  double seconds = 0;                  // of training, over all parts of a run that was stopped
  std::string fingerprint;             // of the run file
  std::optional<BestEvaluation> best;  // of runs with early stopping, once they have evaluated
};

// An f32 array: a parameter, a moment of one, or its moving average.
struct TrainingArray {
  std::string name;
  std::vector<int64_t> shape;
};

// The values of array `index`, valid until the next call.
using ReadStateArray = std::function<absl::StatusOr<std::span<const float>>(size_t index)>;

// Writes the checkpoint of position.step under `output`, and keeps the one before it too. Whenever
// this ends, by an error or by force, LoadLatestState() finds the checkpoint from before or this
// one. Errors: those of `read`; kInternal with the path and the system's reason.
absl::Status SaveTrainingState(const std::string& output, const TrainingPosition& position,
                               const std::vector<TrainingArray>& arrays,
                               const ReadStateArray& read);

// A checkpoint whose checksums and shapes were all found right.
struct LoadedTrainingState {
  TrainingPosition position;
  std::vector<std::string> warnings;  // newer checkpoints that are damaged: a line each
  std::unique_ptr<SafetensorsFile> file;

  // The values of an array of the list given to LoadLatestState().
  absl::StatusOr<std::vector<float>> Read(const std::string& name) const;
};

// The newest checkpoint under `output` that is whole. `arrays`: what it must hold. Errors:
// kNotFound when there is no checkpoint; kInvalidArgument when a whole one holds other arrays, or
// when none is whole, with the reasons.
absl::StatusOr<LoadedTrainingState> LoadLatestState(const std::string& output,
                                                    const std::vector<TrainingArray>& arrays);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TRAIN_CHECKPOINT_TRAINING_STATE_H_
