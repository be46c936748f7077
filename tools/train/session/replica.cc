#include "tools/train/session/replica.h"

#include <algorithm>
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

BatchLoss Replica::Learn(const TrainingBatch& batch, Share share, double scale, uint64_t seed) {
  tape_->ZeroGradients();
  BatchLoss loss;
  for (int64_t first = share.begin; first < share.end; first += run_.micro_batch) {
    const int64_t count = std::min(run_.micro_batch, share.end - first);
    loss += trainee_->Learn(SliceBatch(batch, first, count), scale,
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

std::vector<StateArray> Replica::StateArrays() {
  std::vector<StateArray> arrays;
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

}  // namespace hippodrome
