#include "tools/train/session/replicas.h"

#include <algorithm>
#include <cstring>
#include <future>
#include <string>
#include <type_traits>
#include <utility>

#include "engine/base/status.h"
#include "tools/mpi/collectives.h"

namespace hippodrome {
namespace {

// Adds up what each rank has, value by value.
void AddUp(Communicator& ranks, std::vector<double>& values) {
  const std::vector<std::byte> all = AllGather(ranks, std::as_bytes(std::span(values)));
  std::ranges::fill(values, 0);
  for (size_t rank = 0; rank < static_cast<size_t>(ranks.size()); ++rank) {
    std::vector<double> added(values.size());
    std::memcpy(added.data(), all.data() + rank * values.size() * sizeof(double),
                values.size() * sizeof(double));
    for (size_t i = 0; i < values.size(); ++i) values[i] += added[i];
  }
}

// Gives rank 0 the values of rank `owner`.
void MoveToFirst(Communicator& ranks, int owner, std::span<float> values) {
  constexpr int kTag = 0;
  if (owner == 0) return;
  if (ranks.rank() == owner) Wait(ranks, ranks.Send(0, kTag, std::as_bytes(values)), 0);
  if (ranks.rank() == 0) {
    Wait(ranks, ranks.Receive(owner, kTag, std::as_writable_bytes(values)), owner);
  }
}

}  // namespace

Replica::Replica(const TrainingRun& run, TrainingBackend& backend, Communicator* ranks)
    : run_(run),
      backend_(backend),
      ranks_(ranks),
      parameters_(std::make_unique<Parameters>(backend)) {}

absl::StatusOr<std::unique_ptr<Replica>> Replica::Create(const TrainingRun& run,
                                                         const ModelConfig& config,
                                                         const RunDevices& devices, size_t index) {
  std::unique_ptr<Replica> replica(new Replica(run, *devices.backends[index], devices.ranks));
  HIPPODROME_RETURN_IF_ERROR(replica->Prepare(config, devices, index));
  return replica;
}

absl::Status Replica::Prepare(const ModelConfig& config, const RunDevices& devices, size_t index) {
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
  buckets_ = TrainedBuckets(*parameters_, devices.bucket_values);
  for (size_t b = 0; b < buckets_.size(); ++b) {
    size_ += SizeOf(buckets_[b]);
    for (size_t i = 0; i < buckets_[b].size(); ++i) {
      places_[buckets_[b][i].parameter].push_back({b, i});
    }
  }
  for (Parameter& parameter : parameters_->all()) {
    if (places_.contains(&parameter)) trained_.push_back(&parameter);
  }
  if (devices.on_processor) {
    sum_ = std::make_unique<GradientSum>(backend_, buckets_, run_.batch / run_.micro_batch, ranks_,
                                         run_.shard_optimizer);
    tape_->OnCompleteGradient([this](const Parameter& p) { sum_->Complete(p); });
  } else if (devices.all_reduce != nullptr) {
    all_reduce_ = std::make_unique<GradientAllReduce>(buckets_, *devices.all_reduce, index);
  }
  optimizer_ = std::make_unique<Optimizer>(
      backend_, buckets_, [this](size_t b) { return sum_ == nullptr || sum_->Owns(b); },
      FamilyOf(config), run_.optimizer);
  return absl::OkStatus();
}

std::vector<BatchLoss> Replica::Learn(const TrainingBatch& batch, Share share,
                                      const MicroBatches& how) {
  if (sum_ == nullptr) {
    return hippodrome::Learn(batch, how, share, all_reduce_.get(), *tape_, *trainee_);
  }
  std::vector<BatchLoss> losses = hippodrome::Learn(batch, how, *sum_, *tape_, *trainee_);
  sum_->Finish();
  return losses;
}

double Replica::GradientNorm() {
  std::vector<double> squares = optimizer_->SquaredNorms();
  if (sum_ != nullptr && sum_->sharded()) AddUp(*ranks_, squares);
  return hippodrome::GradientNorm(squares);
}

void Replica::Step(int64_t step, double fraction, double norm) {
  optimizer_->Step(step, fraction, norm);
  if (sum_ != nullptr && sum_->sharded()) sum_->BroadcastValues();
  tape_->Update();
}

void Replica::KeepBest() {
  for (const Parameter* parameter : trained_) {
    const std::span<const float> values = Read(*parameter, Kind::kValue);
    best_[parameter].assign(values.begin(), values.end());
  }
}

// ---- Checkpoints -------------------------------------------------------------------------------

std::vector<Replica::Kind> Replica::Kinds() const {
  std::vector<Kind> kinds = {Kind::kValue, Kind::kM, Kind::kV};
  if (run_.optimizer.ema > 0) kinds.push_back(Kind::kAverage);
  if (run_.patience > 0) kinds.push_back(Kind::kBest);
  return kinds;
}

std::vector<TrainingArray> Replica::StateArrays() const {
  std::vector<TrainingArray> arrays;
  for (const Parameter* parameter : trained_) {
    for (const Kind kind : Kinds()) {
      arrays.push_back({Prefix(kind) + parameter->name, parameter->shape});
    }
  }
  return arrays;
}

absl::StatusOr<std::span<const float>> Replica::ReadState(size_t index) {
  const std::vector<Kind> kinds = Kinds();
  return Read(*trained_[index / kinds.size()], kinds[index % kinds.size()]);
}

absl::Status Replica::Restore(const LoadedTrainingState* state) {
  for (Parameter* parameter : trained_) {
    for (const Kind kind : Kinds()) {
      std::vector<float> values(parameter->host.size());
      absl::Status status;
      if (state != nullptr) {
        auto read = state->Read(Prefix(kind) + parameter->name);
        status = read.status();
        if (read.ok()) values = *std::move(read);
      }
      if (ranks_ != nullptr) {
        status = Agree(*ranks_, status);
        if (status.ok()) Broadcast(*ranks_, 0, std::as_writable_bytes(std::span(values)));
      }
      HIPPODROME_RETURN_IF_ERROR(status);
      Write(*parameter, kind, values);
    }
  }
  tape_->Update();
  return absl::OkStatus();
}

absl::StatusOr<std::span<const float>> Replica::ReadResult(const std::string& name) {
  const Parameter& parameter = *parameters_->Find(name);
  if (!places_.contains(&parameter)) return Read(parameter, Kind::kValue);
  return Read(parameter, run_.optimizer.ema > 0 ? Kind::kAverage
                         : run_.patience > 0    ? Kind::kBest
                                                : Kind::kValue);
}

std::string Replica::Prefix(Kind kind) {
  switch (kind) {
    case Kind::kValue:
      return "";
    case Kind::kM:
      return "m/";
    case Kind::kV:
      return "v/";
    case Kind::kAverage:
      return "average/";
    case Kind::kBest:
      return "best/";
  }
  return "";
}

Tensor Replica::Of(const OptimizedBlock& one, Kind kind) {
  switch (kind) {
    case Kind::kValue:
      return one.block.value();
    case Kind::kM:
      return one.m;
    case Kind::kV:
      return one.v;
    case Kind::kAverage:
      return one.average;
    case Kind::kBest:
      break;  // of whole parameters alone
  }
  return {};
}

// With shards the blocks of others come from them; of the values all ranks have all.
std::span<const float> Replica::Read(const Parameter& parameter, Kind kind) {
  if (kind == Kind::kBest) {
    const auto best = best_.find(&parameter);
    if (best != best_.end()) return best->second;
    kind = Kind::kValue;
  }
  values_.resize(parameter.host.size());
  if (kind == Kind::kValue) {
    backend_.Download(parameter.value, values_);
    return values_;
  }
  for (const Place& place : places_.at(&parameter)) {
    const ParameterBlock& block = buckets_[place.bucket][place.block];
    const auto part =
        std::span(values_).subspan(static_cast<size_t>(block.row * parameter.value.view.cols),
                                   static_cast<size_t>(block.size()));
    const std::vector<OptimizedBlock>& own = optimizer_->buckets()[place.bucket];
    if (!own.empty()) backend_.Download(Of(own[place.block], kind), part);
    if (sum_ != nullptr && sum_->sharded()) MoveToFirst(*ranks_, sum_->Owner(place.bucket), part);
  }
  return values_;
}

void Replica::Write(Parameter& parameter, Kind kind, std::span<const float> values) {
  if (kind == Kind::kValue) return parameters_->Store(parameter, values);
  if (kind == Kind::kBest) return best_[&parameter].assign(values.begin(), values.end());
  for (const Place& place : places_.at(&parameter)) {
    const std::vector<OptimizedBlock>& own = optimizer_->buckets()[place.bucket];
    if (own.empty()) continue;
    const ParameterBlock& block = own[place.block].block;
    backend_.Upload(values.subspan(static_cast<size_t>(block.row * parameter.value.view.cols),
                                   static_cast<size_t>(block.size())),
                    Of(own[place.block], kind));
  }
}

// ---- Replicas ----------------------------------------------------------------------------------

absl::StatusOr<std::unique_ptr<Replicas>> Replicas::Create(const TrainingRun& run,
                                                           const ModelConfig& config,
                                                           RunDevices devices) {
  std::unique_ptr<Replicas> replicas(new Replicas(run, std::move(devices)));
  HIPPODROME_RETURN_IF_ERROR(replicas->ForEachStatus([&](size_t i) -> absl::Status {
    HIPPODROME_ASSIGN_OR_RETURN(replicas->replicas_[i],
                                Replica::Create(run, config, replicas->devices_, i));
    return absl::OkStatus();
  }));
  return replicas;
}

BatchLoss Replicas::Learn(const TrainingBatch& batch, uint64_t seed) {
  Communicator* const ranks = devices_.ranks;
  const size_t here = replicas_.size();
  const size_t first = ranks == nullptr ? 0 : static_cast<size_t>(ranks->rank());
  const size_t count = ranks == nullptr ? here : static_cast<size_t>(ranks->size());
  const MicroBatches how = {
      .sequences = run_.micro_batch, .terms = at(0).Terms(batch), .seed = seed};
  std::vector<std::vector<BatchLoss>> losses(here);
  ForEach([&](size_t i) {
    const Share share = ShareOf(batch.sequences, run_.micro_batch, first + i, count);
    losses[i] = replicas_[i]->Learn(batch, share, how);
  });
  std::vector<BatchLoss> all;
  for (const auto& some : losses) all.insert(all.end(), some.begin(), some.end());
  BatchLoss loss;
  for (const BatchLoss& one : Gather(all)) loss += one;
  return loss;
}

std::vector<BatchLoss> Replicas::Gather(const std::vector<BatchLoss>& losses) {
  Communicator* const ranks = devices_.ranks;
  static_assert(std::is_trivially_copyable_v<BatchLoss>);
  if (ranks == nullptr) return losses;
  const std::string mine(reinterpret_cast<const char*>(losses.data()),
                         losses.size() * sizeof(BatchLoss));
  std::vector<BatchLoss> all;
  for (const std::string& bytes : AllGather(*ranks, mine)) {
    const size_t before = all.size();
    all.resize(before + bytes.size() / sizeof(BatchLoss));
    std::memcpy(all.data() + before, bytes.data(), bytes.size());
  }
  return all;
}

BatchLoss Replicas::Evaluate(int64_t batches, const std::function<TrainingBatch(int64_t)>& batch,
                             bool judge) {
  Communicator* const ranks = devices_.ranks;
  const size_t rank = ranks == nullptr ? 0 : static_cast<size_t>(ranks->rank());
  const size_t count = ranks == nullptr ? 1 : static_cast<size_t>(ranks->size());
  const Share share = ShareOf(batches, 1, rank, count);
  std::vector<BatchLoss> losses;
  for (int64_t i = share.begin; i < share.end; ++i) {
    losses.push_back(at(0).Evaluate(batch(i), judge));
  }
  BatchLoss loss;
  for (const BatchLoss& one : Gather(losses)) loss += one;
  return loss;
}

void Replicas::Step(int64_t step, double fraction, double norm) {
  ForEach([&](size_t i) { replicas_[i]->Step(step, fraction, norm); });
}

absl::Status Replicas::Restore(const LoadedTrainingState* state) {
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
