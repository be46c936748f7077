// The model on every device of a run (data parallel training), each with its optimizer.
#ifndef HIPPODROME_TOOLS_TRAIN_SESSION_REPLICAS_H_
#define HIPPODROME_TOOLS_TRAIN_SESSION_REPLICAS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/tape/tape.h"
#include "tools/train/checkpoint/training_state.h"
#include "tools/train/run/run_devices.h"
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

  LossTerms Terms(const TrainingBatch& batch) const { return trainee_->Terms(batch); }
  // Replaces the gradients by those of what `share` has of the mean loss of `batch`, which has
  // `terms`, a micro-batch at a time; what dropout drops in one is decided by `seed` plus its first
  // sequence.
  BatchLoss Learn(const TrainingBatch& batch, Share share, const LossTerms& terms, uint64_t seed);
  BatchLoss Evaluate(const TrainingBatch& batch, bool judge) {
    return trainee_->Evaluate(batch, judge);
  }

  std::vector<Tensor> Gradients();
  double GradientNorm() { return optimizer_->GradientNorm(); }
  // As Optimizer::Step(); the next forward sees the new values.
  void Step(int64_t step, double fraction, double norm);
  int64_t size() const { return optimizer_->size(); }  // values that are trained

  // What a checkpoint holds: parameters, their moments and averages.
  std::vector<TrainingArray> StateArrays();
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

// The share of replica `index` of `count` of a batch: whole micro-batches, as evenly as they can be
// divided, in order.
Share ShareOf(int64_t sequences, int64_t micro_batch, size_t index, size_t count);

// Each replica learns its share of a batch in a thread of its own, the first in the calling one;
// then gradients are summed, and all make the same step. Micro-batches are learned as if there were
// one device: only the order of the sums depends on how many there are. Not thread-safe: the thread
// that opened the devices uses it. Device failures are thrown as DeviceError.
class Replicas {
 public:
  // `run` must outlive it. Errors: as of Replica::Create().
  static absl::StatusOr<std::unique_ptr<Replicas>> Create(const TrainingRun& run,
                                                          const ModelConfig& config,
                                                          RunDevices devices);

  // Replaces the gradients by those of the mean loss of `batch`, on every replica; `seed`: as in
  // Replica::Learn(). Gives the loss of the whole batch.
  BatchLoss Learn(const TrainingBatch& batch, uint64_t seed);
  void Step(int64_t step, double fraction, double norm);
  absl::Status Restore(const LoadedTrainingState& state);

  // All have the same values; 0 is for the thread that uses this.
  Replica& at(size_t i) { return *replicas_[i]; }

 private:
  Replicas(const TrainingRun& run, RunDevices devices)
      : run_(run), devices_(std::move(devices)), replicas_(devices_.backends.size()) {}

  // Calls work(i) for every replica, each in its thread, and waits for all.
  void ForEach(const std::function<void(size_t)>& work);
  // The same, and gives the first error.
  absl::Status ForEachStatus(const std::function<absl::Status(size_t)>& work);

  const TrainingRun& run_;
  RunDevices devices_;
  std::vector<std::unique_ptr<Replica>> replicas_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TRAIN_SESSION_REPLICAS_H_
