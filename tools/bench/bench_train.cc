#include "tools/bench/bench_train.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "engine/base/status.h"
#include "engine/initialization/initial_weights.h"
#include "kernels/tape/tape.h"
#include "tools/bench/best_time.h"
#include "tools/train/step/decoder_trainee.h"
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
                                                       DType weights) {
    std::unique_ptr<Learner> learner(new Learner(backend, benchmark, weights));
    HIPPODROME_ASSIGN_OR_RETURN(auto initial, InitialWeights(benchmark.config, {}));
    for (InitialParameter& p : initial) {
      learner->parameters_.Add(p.name, p.shape, std::move(p.values));
    }
    HIPPODROME_ASSIGN_OR_RETURN(
        learner->trainee_,
        DecoderTrainee::Create(learner->tape_, learner->parameters_, benchmark.config, weights,
                               {.sequences = benchmark.micro_batch, .length = benchmark.length}));
    learner->optimizer_ = std::make_unique<Optimizer>(
        backend, learner->parameters_, ModelFamily::kH3, OptimizerOptions{.rate = 1e-4});
    return learner;
  }

  void Step() {
    const LossTerms terms = {.count = std::ssize(batch_.labels)};
    tape_.ZeroGradients();
    for (int64_t first = 0; first < batch_.sequences; first += micro_batch_) {
      const int64_t count = std::min(micro_batch_, batch_.sequences - first);
      trainee_->Learn(SliceBatch(batch_, first, count), terms, 0);
    }
    tape_.CollectGradients();
    optimizer_->Step(++steps_, 1, optimizer_->GradientNorm());
    tape_.Update();
    tape_.Wait();
  }

  DType weights() const { return weights_; }
  int64_t parameters() const { return optimizer_->size(); }

 private:
  Learner(TrainingBackend& backend, const TrainBenchmark& benchmark, DType weights)
      : weights_(weights),
        batch_(RandomBatch(benchmark)),
        micro_batch_(benchmark.micro_batch),
        parameters_(backend),
        tape_(backend, parameters_, {.longest = benchmark.length}) {}

  DType weights_;
  TrainingBatch batch_;
  int64_t micro_batch_;
  int64_t steps_ = 0;
  Parameters parameters_;
  Tape tape_;
  std::unique_ptr<Trainee> trainee_;
  std::unique_ptr<Optimizer> optimizer_;
};

}  // namespace

absl::StatusOr<BenchReport> BenchTrain(Machine& machine, const TrainBenchmark& benchmark) {
  auto* backend = dynamic_cast<TrainingBackend*>(machine.backend.get());
  if (backend == nullptr) return Unavailable(machine.backend->name() + " does not train");
  std::vector<std::unique_ptr<Learner>> learners;
  for (const DType weights : benchmark.weights) {
    HIPPODROME_ASSIGN_OR_RETURN(auto learner, Learner::Make(*backend, benchmark, weights));
    learner->Step();  // what is made at the first use
    learners.push_back(std::move(learner));
  }
  BenchReport report;
  std::vector<BestTime> best(learners.size());
  for (int round = 0; round < benchmark.repeats; ++round) {
    report.ceilings = BetterOf(report.ceilings, machine.measure_ceilings());
    for (size_t i = 0; i < learners.size(); ++i) best[i].Run([&] { learners[i]->Step(); });
  }
  const int64_t tokens = benchmark.batch * benchmark.length;
  for (size_t i = 0; i < learners.size(); ++i) {
    const Cost cost = TrainingStepCost(benchmark.config, {.sequences = benchmark.batch,
                                                          .length = benchmark.length,
                                                          .answers = tokens,
                                                          .parameters = learners[i]->parameters()});
    report.results.push_back(Rate({.name = "train",
                                   .length = benchmark.length,
                                   .batch = benchmark.batch,
                                   .tokens = static_cast<double>(tokens),
                                   .seconds = best[i].seconds()},
                                  cost, learners[i]->weights(), report.ceilings));
  }
  return report;
}

}  // namespace hippodrome
