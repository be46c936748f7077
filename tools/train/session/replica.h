// A model in training on one device, with its optimizer.
#ifndef HIPPODROME_TOOLS_TRAIN_SESSION_REPLICA_H_
#define HIPPODROME_TOOLS_TRAIN_SESSION_REPLICA_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/tape/tape.h"
#include "tools/train/checkpoint/training_state.h"
#include "tools/train/run/run_file.h"
#include "tools/train/run/starting_model.h"
#include "tools/train/step/optimizer.h"
#include "tools/train/step/trainee.h"

namespace hippodrome {

// The sequences [begin, end) of a batch.
struct Share {
  int64_t begin = 0;
  int64_t end = 0;
};

// Not thread-safe; threads that use it are bound to its backend, which must outlive it.
class Replica {
 public:
  // With the parameters that the run begins with. Errors: of reading.
  static absl::StatusOr<std::unique_ptr<Replica>> Create(const TrainingRun& run,
                                                         const ModelConfig& config,
                                                         TrainingBackend& backend);

  int64_t Terms(const TrainingBatch& batch) const { return trainee_->Terms(batch); }
  // Replaces the gradients by those of `scale` times the sum of losses in `share`, a micro-batch at
  // a time; what dropout drops in one is decided by `seed` plus its first sequence.
  BatchLoss Learn(const TrainingBatch& batch, Share share, double scale, uint64_t seed);
  BatchLoss Evaluate(const TrainingBatch& batch, bool judge) {
    return trainee_->Evaluate(batch, judge);
  }

  std::vector<Tensor> Gradients();
  double GradientNorm() { return optimizer_->GradientNorm(); }
  // As Optimizer::Step(); the next forward sees the new values.
  void Step(int64_t step, double fraction, double norm);
  int64_t size() const { return optimizer_->size(); }  // values that are trained

  // What a checkpoint holds: parameters, their moments and averages.
  std::vector<StateArray> StateArrays();
  // The values of array `index`, valid until the next call, as below.
  absl::StatusOr<std::span<const float>> ReadState(size_t index);
  absl::Status Restore(const LoadedTrainingState& state);

  // The values of parameter `index`, as a moving average where the run keeps one.
  absl::StatusOr<std::span<const float>> ReadResult(size_t index);
  const Parameters& parameters() const { return *parameters_; }

 private:
  Replica(const TrainingRun& run, TrainingBackend& backend);
  absl::Status Prepare(const ModelConfig& config);
  std::span<const float> Download(Tensor array);

  const TrainingRun& run_;
  TrainingBackend& backend_;
  std::unique_ptr<Parameters> parameters_;
  std::unique_ptr<Tape> tape_;
  std::unique_ptr<Trainee> trainee_;
  std::unique_ptr<Optimizer> optimizer_;
  std::vector<float> values_;  // of Download()
};

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TRAIN_SESSION_REPLICA_H_
