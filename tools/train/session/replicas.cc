#include "tools/train/session/replicas.h"

#include <algorithm>
#include <future>
#include <utility>

#include "engine/base/status.h"

namespace hippodrome {

Share ShareOf(int64_t sequences, int64_t micro_batch, size_t index, size_t count) {
  const int64_t parts = (sequences + micro_batch - 1) / micro_batch;
  const auto border = [&](size_t i) {
    const int64_t part = parts * static_cast<int64_t>(i) / static_cast<int64_t>(count);
    return std::min(part * micro_batch, sequences);
  };
  return {border(index), border(index + 1)};
}

absl::StatusOr<std::unique_ptr<Replicas>> Replicas::Create(const TrainingRun& run,
                                                           const ModelConfig& config,
                                                           RunDevices devices) {
  std::unique_ptr<Replicas> replicas(new Replicas(run, std::move(devices)));
  HIPPODROME_RETURN_IF_ERROR(replicas->ForEachStatus([&](size_t i) -> absl::Status {
    HIPPODROME_ASSIGN_OR_RETURN(replicas->replicas_[i],
                                Replica::Create(run, config, *replicas->devices_.backends[i]));
    return absl::OkStatus();
  }));
  return replicas;
}

BatchLoss Replicas::Learn(const TrainingBatch& batch, uint64_t seed) {
  const size_t count = replicas_.size();
  const double scale = 1 / static_cast<double>(std::max<int64_t>(at(0).Terms(batch), 1));
  std::vector<BatchLoss> losses(count);
  std::vector<std::vector<Tensor>> gradients(count);
  ForEach([&](size_t i) {
    const Share share = ShareOf(batch.sequences, run_.micro_batch, i, count);
    losses[i] = replicas_[i]->Learn(batch, share, scale, seed);
    gradients[i] = replicas_[i]->Gradients();
  });
  if (devices_.exchange != nullptr) devices_.exchange->Sum(gradients);
  BatchLoss loss;
  for (const BatchLoss& one : losses) loss += one;
  return loss;
}

void Replicas::Step(int64_t step, double fraction, double norm) {
  ForEach([&](size_t i) { replicas_[i]->Step(step, fraction, norm); });
}

absl::Status Replicas::Restore(const LoadedTrainingState& state) {
  return ForEachStatus([&](size_t i) { return replicas_[i]->Restore(state); });
}

// What a thread throws is thrown here; the others are waited for also then.
void Replicas::ForEach(const std::function<void(size_t)>& work) {
  std::vector<std::future<void>> others;
  for (size_t i = 1; i < replicas_.size(); ++i) {
    others.push_back(std::async(std::launch::async, [&, i] {
      devices_.backends[i]->BindThread();
      work(i);
    }));
  }
  work(0);
  for (std::future<void>& other : others) other.get();
}

absl::Status Replicas::ForEachStatus(const std::function<absl::Status(size_t)>& work) {
  std::vector<absl::Status> statuses(replicas_.size());
  ForEach([&](size_t i) { statuses[i] = work(i); });
  for (const absl::Status& status : statuses) HIPPODROME_RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

}  // namespace hippodrome
