// A small run, on whatever devices a test gives it.
#ifndef HIPPODROME_TESTS_TOOLS_TRAIN_REPLICA_RUN_H_
#define HIPPODROME_TESTS_TOOLS_TRAIN_REPLICA_RUN_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/train/run/run_data.h"
#include "tools/train/session/replicas.h"
#include "tools/train/step/trained_names.h"

namespace hippodrome {

// Four micro-batches, and all that could depend on how they are divided.
inline TrainingRun SmallRun() {
  const auto run = ParseTrainingRun(R"({
    "output": "out", "objective": "induction_head",
    "model": {"config": {"model_type": "h3", "d_model": 16, "n_layer": 2, "d_inner": 32,
                         "vocab_size": 12, "pad_vocab_size_multiple": 1, "ssm_cfg": {"d_state": 4},
                         "attn_layer_idx": [1], "attn_cfg": {"num_heads": 2}}},
    "data": {"vocabulary": 12, "sequence": 9}, "batch": 4, "micro_batch": 1, "steps": 10,
    "optimizer": {"rate": 1e-3, "weight_decay": 0.1, "clip": 0.5, "ema": 0.9},
    "dropout": {"embedding": 0.1, "attention": 0.1}, "seed": 3, "threads": 1
  })",
                                    "/");
  EXPECT_TRUE(run.ok()) << run.status();
  return *run;
}

// That run, without what a TrainingSession adds.
class ReplicaRun {
 public:
  explicit ReplicaRun(RunDevices devices) : ReplicaRun(SmallRun(), std::move(devices)) {}
  ReplicaRun(const TrainingRun& run, RunDevices devices)
      : run_(run),
        config_(StartingConfig(run_).value()),
        data_(ReadRunData(run_, config_).value()),
        count_(devices.backends.size()),
        replicas_(Replicas::Create(run_, config_, std::move(devices)).value()) {}

  BatchLoss Learn() {
    const TrainingBatch batch = data_.train->Batch(step_);
    return replicas_->Learn(batch, static_cast<uint64_t>(step_ * run_.batch));
  }
  // Learns and makes a step; gives the mean loss before it.
  double Step() {
    const double loss = Learn().mean();
    ++step_;
    replicas_->Step(step_, 1, replicas_->GradientNorm());
    return loss;
  }

  BatchLoss Evaluate(int64_t batches) {
    return replicas_->Evaluate(
        batches, [&](int64_t i) { return SliceBatch(data_.train->Batch(i), 0, run_.micro_batch); },
        /*judge=*/true);
  }

  // Everything that a checkpoint of replica `i` would hold.
  std::vector<std::vector<float>> State(size_t i) {
    std::vector<std::vector<float>> state;
    for (size_t array = 0; array < replicas_->at(i).StateArrays().size(); ++array) {
      const std::span<const float> values = replicas_->at(i).ReadState(array).value();
      state.emplace_back(values.begin(), values.end());
    }
    return state;
  }
  void ExpectReplicasAreTheSame() {
    for (size_t i = 1; i < count_; ++i) EXPECT_EQ(State(i), State(0)) << "replica " << i;
  }

  // output: empty but for rank 0.
  void Resume(const std::string& output, int64_t step) {
    std::optional<LoadedTrainingState> state;
    if (!output.empty()) {
      state = LoadLatestState(output, replicas_->at(0).StateArrays()).value();
    }
    ASSERT_TRUE(replicas_->Restore(output.empty() ? nullptr : &*state).ok());
    step_ = step;
  }
  Replicas& replicas() { return *replicas_; }

 private:
  const TrainingRun run_;
  const ModelConfig config_;
  const RunData data_;
  size_t count_;
  std::unique_ptr<Replicas> replicas_;
  int64_t step_ = 0;
};

inline std::vector<Tensor> TrainedGradients(const Parameters& parameters) {
  std::vector<Tensor> gradients;
  for (const Parameter& p : parameters.all()) {
    if (p.gradient.data != nullptr && IsTrained(p.name)) gradients.push_back(p.gradient);
  }
  return gradients;
}

// The largest difference of a gradient between the first replicas of two runs that have learned the
// same batch, relative to the largest value of its tensor.
inline double GradientDifference(ReplicaRun& one, TrainingBackend& one_backend, ReplicaRun& other,
                                 TrainingBackend& other_backend) {
  const std::vector<Tensor> a = TrainedGradients(one.replicas().at(0).parameters());
  const std::vector<Tensor> b = TrainedGradients(other.replicas().at(0).parameters());
  EXPECT_EQ(a.size(), b.size());
  double worst = 0;
  for (size_t t = 0; t < a.size(); ++t) {
    std::vector<float> x(static_cast<size_t>(a[t].rows * a[t].cols)), y(x.size());
    one_backend.Download(a[t], x);
    other_backend.Download(b[t], y);
    double largest = 1e-9;
    double difference = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      largest = std::max<double>(largest, std::abs(x[i]));
      difference = std::max<double>(difference, std::abs(x[i] - y[i]));
    }
    worst = std::max(worst, difference / largest);
  }
  return worst;
}

}  // namespace hippodrome

#endif  // HIPPODROME_TESTS_TOOLS_TRAIN_REPLICA_RUN_H_
