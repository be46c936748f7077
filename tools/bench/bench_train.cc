#include "tools/bench/bench_train.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "engine/initialization/initial_weights.h"
#include "kernels/tape/tape.h"
#include "tools/bench/best_time.h"
#include "tools/mpi/collectives.h"
#include "tools/train/step/decoder_trainee.h"
#include "tools/train/step/gradient_sum.h"
#include "tools/train/step/micro_batch.h"
#include "tools/train/step/optimizer.h"
#include "tools/train/step/step_limits.h"

namespace hippodrome {
namespace {

TrainingBatch RandomBatch(const TrainBenchmark& benchmark) {
  TrainingBatch batch = {.sequences = benchmark.batch, .length = benchmark.length};
  for (int64_t i = 0; i < benchmark.batch * benchmark.length; ++i) {
    batch.ids.push_back(static_cast<int32_t>(i * 7919 % benchmark.config.vocab_size));
    batch.labels.push_back(static_cast<int32_t>(i * 104729 % benchmark.config.vocab_size));
  }
  return batch;
}

// A model that learns one batch again and again.
class Learner {
 public:
  static absl::StatusOr<std::unique_ptr<Learner>> Make(TrainingBackend& backend,
                                                       const TrainBenchmark& benchmark,
                                                       DType weights, Communicator* ranks) {
    std::unique_ptr<Learner> learner(new Learner(backend, benchmark, weights));
    HIPPODROME_ASSIGN_OR_RETURN(auto initial, InitialWeights(benchmark.config, {}));
    for (InitialParameter& p : initial) {
      learner->parameters_.Add(p.name, p.shape, std::move(p.values));
    }
    HIPPODROME_ASSIGN_OR_RETURN(
        learner->trainee_,
        DecoderTrainee::Create(learner->tape_, learner->parameters_, benchmark.config, weights,
                               {.sequences = benchmark.micro_batch, .length = benchmark.length}));
    learner->Prepare(backend, ranks);
    return learner;
  }

  void Step() {
    const MicroBatches how = {.sequences = micro_batch_,
                              .terms = {.count = std::ssize(batch_.labels)}};
    if (sum_ != nullptr) {
      Learn(batch_, how, *sum_, tape_, *trainee_);
      sum_->Finish();
    } else {
      Learn(batch_, how, {0, batch_.sequences}, nullptr, tape_, *trainee_);
    }
    optimizer_->Step(++steps_, 1, GradientNorm(optimizer_->SquaredNorms()));
    tape_.Update();
    tape_.Wait();
  }

  DType weights() const { return weights_; }
  int64_t parameters() const { return size_; }
  double communication_seconds() const { return sum_ == nullptr ? 0 : sum_->seconds(); }

 private:
  Learner(TrainingBackend& backend, const TrainBenchmark& benchmark, DType weights)
      : weights_(weights),
        batch_(RandomBatch(benchmark)),
        micro_batch_(benchmark.micro_batch),
        parameters_(backend),
        tape_(backend, parameters_, {.longest = benchmark.length}) {}

  // Sums as training does on the same backend.
  void Prepare(TrainingBackend& backend, Communicator* ranks) {
    const std::vector<Bucket> buckets = TrainedBuckets(parameters_);
    for (const Bucket& bucket : buckets) size_ += SizeOf(bucket);
    optimizer_ = std::make_unique<Optimizer>(
        backend, buckets, [](size_t) { return true; }, ModelFamily::kH3,
        OptimizerOptions{.rate = 1e-4});
    if (backend.name() != "cpu") return;
    const int64_t parts = (batch_.sequences + micro_batch_ - 1) / micro_batch_;
    sum_ = std::make_unique<GradientSum>(backend, buckets, parts, ranks, false);
    tape_.OnCompleteGradient([this](const Parameter& p) { sum_->Complete(p); });
  }

  DType weights_;
  TrainingBatch batch_;
  int64_t micro_batch_;
  int64_t steps_ = 0;
  int64_t size_ = 0;
  Parameters parameters_;
  Tape tape_;
  std::unique_ptr<Trainee> trainee_;
  std::unique_ptr<GradientSum> sum_;  // null on devices
  std::unique_ptr<Optimizer> optimizer_;
};

// `seconds`: of each step.
BenchResult TrainRate(const std::string& name, const TrainBenchmark& benchmark,
                      const Learner& learner, const std::vector<double>& seconds,
                      const Ceilings& ceilings) {
  const int64_t tokens = benchmark.batch * benchmark.length;
  const Cost cost = TrainingStepCost(benchmark.config, {.sequences = benchmark.batch,
                                                        .length = benchmark.length,
                                                        .answers = tokens,
                                                        .parameters = learner.parameters()});
  return BestRate({.name = name,
                   .length = benchmark.length,
                   .batch = benchmark.batch,
                   .tokens = static_cast<double>(tokens),
                   .weights = learner.weights(),
                   .cost = cost,
                   .seconds = seconds},
                  ceilings);
}

absl::StatusOr<TrainingBackend*> Trains(const Machine& machine) {
  auto* backend = dynamic_cast<TrainingBackend*>(machine.backend.get());
  if (backend == nullptr) return Unavailable(machine.backend->name() + " does not train");
  return backend;
}

}  // namespace

absl::StatusOr<BenchReport> BenchTrain(Machine& machine, const TrainBenchmark& benchmark) {
  HIPPODROME_ASSIGN_OR_RETURN(TrainingBackend* const backend, Trains(machine));
  std::vector<std::unique_ptr<Learner>> learners;
  for (const DType weights : benchmark.weights) {
    HIPPODROME_ASSIGN_OR_RETURN(auto learner, Learner::Make(*backend, benchmark, weights, nullptr));
    learner->Step();  // what is made at the first use
    learners.push_back(std::move(learner));
  }
  BenchReport report;
  std::vector<std::vector<double>> seconds(learners.size());
  for (int round = 0; round < benchmark.repeats; ++round) {
    report.ceilings = BetterOf(report.ceilings, machine.measure_ceilings(OfRuns::kBest));
    for (size_t i = 0; i < learners.size(); ++i) {
      seconds[i].push_back(SecondsOf([&] { learners[i]->Step(); }));
    }
  }
  for (size_t i = 0; i < learners.size(); ++i) {
    report.results.push_back(
        TrainRate("train", benchmark, *learners[i], seconds[i], report.ceilings));
  }
  return report;
}

absl::StatusOr<BenchReport> BenchTrainOnRanks(Machine& machine, const TrainBenchmark& benchmark,
                                              Communicator& ranks, int threads) {
  if (const int64_t parts = benchmark.batch / benchmark.micro_batch; ranks.size() > parts) {
    return InvalidArgument(std::to_string(ranks.size()) + " ranks, but " + std::to_string(parts) +
                           " micro-batches; expected one at least for each rank");
  }
  const bool first = ranks.rank() == 0;
  HIPPODROME_ASSIGN_OR_RETURN(TrainingBackend* const backend, Trains(machine));
  const auto shared = MakeCpuBackend({.threads = threads});
  const std::vector<std::string> hosts = AllGather(ranks, ranks.host());
  const auto machines = static_cast<double>(std::set(hosts.begin(), hosts.end()).size());
  BenchReport report;
  for (const DType weights : benchmark.weights) {
    HIPPODROME_ASSIGN_OR_RETURN(auto together, Learner::Make(*shared, benchmark, weights, &ranks));
    HIPPODROME_ASSIGN_OR_RETURN(auto alone, Learner::Make(*backend, benchmark, weights, nullptr));
    if (first) alone->Step();  // what is made at the first use
    together->Step();
    const double before = together->communication_seconds();
    std::vector<double> alone_seconds, together_seconds;
    for (int round = 0; round < benchmark.repeats; ++round) {
      if (first) {
        report.ceilings = BetterOf(report.ceilings, machine.measure_ceilings(OfRuns::kBest));
        alone_seconds.push_back(SecondsOf([&] { alone->Step(); }));
      }
      Barrier(ranks);
      together_seconds.push_back(SecondsOf([&] {
        together->Step();
        Barrier(ranks);
      }));
    }
    if (!first) continue;
    const BenchResult one =
        TrainRate("train one process", benchmark, *alone, alone_seconds, report.ceilings);
    BenchResult all =
        TrainRate("train ranks", benchmark, *together, together_seconds, report.ceilings);
    all.limit *= machines;
    all.fraction /= machines;
    report.results.push_back(one);
    report.results.push_back(all);
    report.results.push_back({.name = "scaling",
                              .length = benchmark.length,
                              .batch = benchmark.batch,
                              .weights = WeightsName(weights),
                              .value = all.value / one.value / machines,
                              .unit = "of ideal",
                              .limit = 1,
                              .fraction = all.value / one.value / machines});
    const double seconds = std::accumulate(together_seconds.begin(), together_seconds.end(), 0.0);
    report.results.push_back({.name = "communication",
                              .length = benchmark.length,
                              .batch = benchmark.batch,
                              .weights = WeightsName(weights),
                              .value = (together->communication_seconds() - before) / seconds,
                              .unit = "of the time"});
  }
  return report;
}

}  // namespace hippodrome
