// The model on every device of a run (data parallel training), each with its optimizer.
#ifndef HIPPODROME_TOOLS_TRAIN_SESSION_REPLICAS_H_
#define HIPPODROME_TOOLS_TRAIN_SESSION_REPLICAS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/tape/tape.h"
#include "tools/mpi/communicator.h"
#include "tools/train/checkpoint/training_state.h"
#include "tools/train/run/run_devices.h"
#include "tools/train/run/run_file.h"
#include "tools/train/run/starting_model.h"
#include "tools/train/step/gradient_all_reduce.h"
#include "tools/train/step/gradient_sum.h"
#include "tools/train/step/micro_batch.h"
#include "tools/train/step/optimizer.h"
#include "tools/train/step/trainee.h"

namespace hippodrome {

// Not thread-safe; threads that use it are bound to its backend, which must outlive it, as the
// ranks must. Where there are ranks, all make the same calls.
class Replica {
 public:
  // On device `index`, with the parameters that the run begins with. On a processor gradients are
  // summed in the order of GradientTree, over the ranks if there are any. Errors: of reading.
  static absl::StatusOr<std::unique_ptr<Replica>> Create(const TrainingRun& run,
                                                         const ModelConfig& config,
                                                         const RunDevices& devices, size_t index);

  LossTerms Terms(const TrainingBatch& batch) const { return trainee_->Terms(batch); }
  // Replaces the gradients by those of the mean loss of `batch`, of which this replica learns
  // `share`, and the others, which call it at the same time, the rest. Gives the losses of the
  // micro-batches that it learned.
  std::vector<BatchLoss> Learn(const TrainingBatch& batch, Share share, const MicroBatches& how);
  BatchLoss Evaluate(const TrainingBatch& batch, bool judge) {
    return trainee_->Evaluate(batch, judge);
  }

  // Of all gradients together.
  double GradientNorm();
  // As Optimizer::Step(); the next forward sees the new values.
  void Step(int64_t step, double fraction, double norm);
  int64_t size() const { return size_; }  // values that are trained

  // Early stopping: the parameters of now are those of the best evaluation so far.
  void KeepBest();

  // What a checkpoint holds: parameters, their moments and averages, and the best parameters.
  std::vector<TrainingArray> StateArrays() const;
  // The values of array `index`, valid until the next call; with ranks, those of rank 0 alone.
  absl::StatusOr<std::span<const float>> ReadState(size_t index);
  // `state`: null but for rank 0, which gives all others what it reads.
  absl::Status Restore(const LoadedTrainingState* state);

  // The values of a parameter, as a moving average or of the best evaluation where the run keeps
  // those; as ReadState(). REQUIRES: it exists.
  absl::StatusOr<std::span<const float>> ReadResult(const std::string& name);
  const Parameters& parameters() const { return *parameters_; }
  // See GradientSum::seconds(); 0 on devices.
  double communication_seconds() const { return sum_ == nullptr ? 0 : sum_->seconds(); }

 private:
  // What is kept of a parameter that is trained.
  enum class Kind : uint8_t { kValue, kM, kV, kAverage, kBest };

  Replica(const TrainingRun& run, TrainingBackend& backend, Communicator* ranks);
  absl::Status Prepare(const ModelConfig& config, const RunDevices& devices, size_t index);
  std::vector<Kind> Kinds() const;
  // Begins the names of arrays of that kind.
  static std::string Prefix(Kind kind);
  static Tensor Of(const OptimizedBlock& one, Kind kind);
  // The array of kind `kind` of all blocks of `parameter`, or of the value itself.
  std::span<const float> Read(const Parameter& parameter, Kind kind);
  void Write(Parameter& parameter, Kind kind, std::span<const float> values);

  // Where a block of a parameter is among buckets.
  struct Place {
    size_t bucket;
    size_t block;
  };

  const TrainingRun& run_;
  TrainingBackend& backend_;
  Communicator* const ranks_;
  std::unique_ptr<Parameters> parameters_;
  std::unique_ptr<Tape> tape_;
  std::unique_ptr<Trainee> trainee_;
  std::vector<Bucket> buckets_;
  std::map<const Parameter*, std::vector<Place>> places_;  // of those that are trained
  std::vector<Parameter*> trained_;                        // in the order of all parameters
  int64_t size_ = 0;
  std::map<const Parameter*, std::vector<float>> best_;  // none before the first evaluation
  std::unique_ptr<GradientSum> sum_;                     // null on devices
  std::unique_ptr<GradientAllReduce> all_reduce_;        // null for one device
  std::unique_ptr<Optimizer> optimizer_;
  std::vector<float> values_;  // of Read()
};

// The replicas of this process: one on a processor, one on each device. Each learns its share of a
// batch in a thread of its own, the first in the calling one; gradients are summed meanwhile, and
// all make the same step. Micro-batches are learned as if there were one device: only the order of
// the sums depends on how many there are, and on processors not even that. With ranks, whose
// processes all make the same calls, each learns a share of the batch. Not thread-safe: the thread
// that opened the devices uses it. Device failures are thrown as DeviceError.
class Replicas {
 public:
  // `run` must outlive it. Errors: as of Replica::Create().
  static absl::StatusOr<std::unique_ptr<Replicas>> Create(const TrainingRun& run,
                                                          const ModelConfig& config,
                                                          RunDevices devices);

  // Replaces the gradients by those of the mean loss of `batch`, on every replica; `seed`: as in
  // MicroBatches. Gives the loss of the whole batch.
  BatchLoss Learn(const TrainingBatch& batch, uint64_t seed);
  double GradientNorm() { return at(0).GradientNorm(); }
  void Step(int64_t step, double fraction, double norm);
  // The loss of `batches`, of which each rank takes its part.
  BatchLoss Evaluate(int64_t batches, const std::function<TrainingBatch(int64_t)>& batch,
                     bool judge);
  // As Replica::Restore().
  absl::Status Restore(const LoadedTrainingState* state);

  // All have the same values; 0 is for the thread that uses this.
  Replica& at(size_t i) { return *replicas_[i]; }

 private:
  Replicas(const TrainingRun& run, RunDevices devices)
      : run_(run), devices_(std::move(devices)), replicas_(devices_.backends.size()) {}

  // Of all ranks, in their order.
  std::vector<BatchLoss> Gather(const std::vector<BatchLoss>& losses);
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
