// The same model on every device of a run (data parallel training).
#ifndef HIPPODROME_TOOLS_TRAIN_SESSION_REPLICAS_H_
#define HIPPODROME_TOOLS_TRAIN_SESSION_REPLICAS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/train/run/run_devices.h"
#include "tools/train/session/replica.h"

namespace hippodrome {

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
