#include "tools/train/session/replicas.h"

#include <algorithm>
#include <future>
#include <string>
#include <utility>

#include "engine/base/status.h"
#include "tools/train/step/micro_batch.h"

namespace hippodrome {

Replica::Replica(const TrainingRun& run, TrainingBackend& backend)
    : run_(run), backend_(backend), parameters_(std::make_unique<Parameters>(backend)) {}

absl::StatusOr<std::unique_ptr<Replica>> Replica::Create(const TrainingRun& run,
                                                         const ModelConfig& config,
                                                         TrainingBackend& backend) {
  std::unique_ptr<Replica> replica(new Replica(run, backend));
  HIPPODROME_RETURN_IF_ERROR(replica->Prepare(config));
  return replica;
}

absl::Status Replica::Prepare(const ModelConfig& config) {
  HIPPODROME_RETURN_IF_ERROR(AddStartingParameters(run_, config, *parameters_));
  const auto* encoder = std::get_if<BigsConfig>(&config);
  const int32_t padding = encoder == nullptr ? -1 : static_cast<int32_t>(encoder->pad_token_id);
  tape_ = std::make_unique<Tape>(backend_, *parameters_,
                                 TapeOptions{.longest = run_.length,
                                             .padding_id = padding,
                                             .dropout = {run_.dropout.embedding, run_.dropout.head},
                                             .attention_dropout = run_.dropout.attention});
  const TraineeSize size = {
      .sequences = run_.micro_batch, .length = run_.length, .recompute = run_.recompute};
  HIPPODROME_ASSIGN_OR_RETURN(trainee_,
                              MakeTrainee(config, run_.weights, size, *tape_, *parameters_));
  optimizer_ =
      std::make_unique<Optimizer>(backend_, *parameters_, FamilyOf(config), run_.optimizer);
  return absl::OkStatus();
}

BatchLoss Replica::Learn(const TrainingBatch& batch, Share share, const LossTerms& terms,
                         uint64_t seed) {
  tape_->ZeroGradients();
  BatchLoss loss;
  for (int64_t first = share.begin; first < share.end; first += run_.micro_batch) {
    const int64_t count = std::min(run_.micro_batch, share.end - first);
    loss += trainee_->Learn(SliceBatch(batch, first, count), terms,
                            seed + static_cast<uint64_t>(first));
  }
  tape_->CollectGradients();
  return loss;
}

std::vector<Tensor> Replica::Gradients() {
  std::vector<Tensor> gradients;
  for (const OptimizedParameter& p : optimizer_->all()) gradients.push_back(p.parameter->gradient);
  return gradients;
}

void Replica::Step(int64_t step, double fraction, double norm) {
  optimizer_->Step(step, fraction, norm);
  tape_->Update();
}

std::vector<TrainingArray> Replica::StateArrays() {
  std::vector<TrainingArray> arrays;
  for (const OptimizedParameter& p : optimizer_->all()) {
    const Parameter& parameter = *p.parameter;
    arrays.push_back({parameter.name, parameter.shape});
    arrays.push_back({"m/" + parameter.name, parameter.shape});
    arrays.push_back({"v/" + parameter.name, parameter.shape});
    if (run_.optimizer.ema > 0) arrays.push_back({"average/" + parameter.name, parameter.shape});
  }
  return arrays;
}

absl::StatusOr<std::span<const float>> Replica::ReadState(size_t index) {
  const size_t kinds = run_.optimizer.ema > 0 ? 4 : 3;
  const OptimizedParameter& p = optimizer_->all()[index / kinds];
  const Tensor arrays[] = {p.parameter->value, p.m, p.v, p.average};
  return Download(arrays[index % kinds]);
}

absl::Status Replica::Restore(const LoadedTrainingState& state) {
  for (OptimizedParameter& p : optimizer_->all()) {
    const std::string& name = p.parameter->name;
    HIPPODROME_ASSIGN_OR_RETURN(const std::vector<float> values, state.Read(name));
    parameters_->Store(*p.parameter, values);
    HIPPODROME_ASSIGN_OR_RETURN(const std::vector<float> m, state.Read("m/" + name));
    backend_.Upload(m, p.m);
    HIPPODROME_ASSIGN_OR_RETURN(const std::vector<float> v, state.Read("v/" + name));
    backend_.Upload(v, p.v);
    if (run_.optimizer.ema == 0) continue;
    HIPPODROME_ASSIGN_OR_RETURN(const std::vector<float> average, state.Read("average/" + name));
    backend_.Upload(average, p.average);
  }
  tape_->Update();
  return absl::OkStatus();
}

absl::StatusOr<std::span<const float>> Replica::ReadResult(size_t index) {
  const Parameter& parameter = parameters_->all()[index];
  Tensor result = parameter.value;
  for (const OptimizedParameter& p : optimizer_->all()) {
    if (p.parameter == &parameter && run_.optimizer.ema > 0) result = p.average;
  }
  return Download(result);
}

std::span<const float> Replica::Download(Tensor array) {
  values_.resize(static_cast<size_t>(array.rows * array.cols));
  backend_.Download(array, values_);
  return values_;
}

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
  const LossTerms terms = at(0).Terms(batch);
  std::vector<BatchLoss> losses(count);
  std::vector<std::vector<Tensor>> gradients(count);
  ForEach([&](size_t i) {
    const Share share = ShareOf(batch.sequences, run_.micro_batch, i, count);
    losses[i] = replicas_[i]->Learn(batch, share, terms, seed);
    gradients[i] = replicas_[i]->Gradients();
  });
  if (devices_.all_reduce != nullptr) devices_.all_reduce->Sum(gradients);
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
