#include "tools/train/data/synthetic_tasks.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "engine/base/status.h"
#include "tools/train/data/numpy_generator.h"
#include "tools/train/data/synthetic_sequences.h"

namespace hippodrome {
namespace {

absl::Status CheckRange(const std::string& name, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return InvalidArgument("the " + name + " of the task is " + std::to_string(value) +
                         ", expected " + std::to_string(least) + " to " + std::to_string(most));
}

absl::Status Check(const SyntheticTask& task) {
  HIPPODROME_RETURN_IF_ERROR(CheckRange("vocabulary", task.vocabulary, 4, 1 << 16));
  HIPPODROME_RETURN_IF_ERROR(CheckRange("length", task.length, 4, 1 << 16));
  HIPPODROME_RETURN_IF_ERROR(CheckRange("number of training sequences", task.train, 1, 1 << 20));
  HIPPODROME_RETURN_IF_ERROR(CheckRange("number of test sequences", task.test, 1, 1 << 20));
  if (task.kind == SyntheticKind::kInductionHead || task.length % 2 == 0) return absl::OkStatus();
  return InvalidArgument("the length of associative recall is " + std::to_string(task.length) +
                         ", expected an even number");
}

std::vector<int32_t> Sequence(const SyntheticTask& task, NumpyGenerator& random) {
  return task.kind == SyntheticKind::kInductionHead
             ? InductionHeadSequence(task.vocabulary, task.length, random)
             : AssociativeRecallSequence(task.vocabulary, task.length, random);
}

// `count` sequences without repetitions: the different ones of the first `count`, sorted, then
// others as they come, all shuffled.
absl::StatusOr<SyntheticSequences> Sequences(const SyntheticTask& task, int64_t count,
                                             NumpyGenerator& random) {
  std::set<std::vector<int32_t>> seen;
  for (int64_t i = 0; i < count; ++i) seen.insert(Sequence(task, random));
  SyntheticSequences sequences(seen.begin(), seen.end());
  for (int64_t tries = 100 * count; std::ssize(sequences) < count; --tries) {
    if (tries == 0) {
      return InvalidArgument("the task has too few different sequences to find " +
                             std::to_string(count));
    }
    std::vector<int32_t> sequence = Sequence(task, random);
    if (seen.insert(sequence).second) sequences.push_back(std::move(sequence));
  }
  random.Shuffle(sequences);
  return sequences;
}

class SyntheticData final : public TrainingData {
 public:
  SyntheticData(SyntheticSequences sequences, bool last_only, ExampleOrder order)
      : sequences_(std::move(sequences)), last_only_(last_only), order_(order) {}

  int64_t batches() const override { return order_.batches(); }

  TrainingBatch Batch(int64_t index) const override {
    const std::vector<int64_t> examples = order_.Examples(index);
    TrainingBatch batch{.sequences = std::ssize(examples), .length = std::ssize(sequences_[0]) - 1};
    for (const int64_t example : examples) {
      const std::vector<int32_t>& sequence = sequences_[example];
      batch.ids.insert(batch.ids.end(), sequence.begin(), sequence.end() - 1);
      batch.labels.insert(batch.labels.end(), sequence.begin() + 1, sequence.end());
      if (last_only_) std::fill(batch.labels.end() - batch.length, batch.labels.end() - 1, -1);
    }
    return batch;
  }

 private:
  SyntheticSequences sequences_;  // all of one length
  bool last_only_;                // only the last position has a label
  ExampleOrder order_;
};

}  // namespace

absl::StatusOr<SyntheticExamples> MakeSyntheticExamples(const SyntheticTask& task) {
  HIPPODROME_RETURN_IF_ERROR(Check(task));
  NumpyGenerator random(task.seed);
  SyntheticExamples examples;
  HIPPODROME_ASSIGN_OR_RETURN(examples.train, Sequences(task, task.train, random));
  HIPPODROME_ASSIGN_OR_RETURN(examples.test, Sequences(task, task.test, random));
  return examples;
}

absl::StatusOr<std::unique_ptr<TrainingData>> MakeSyntheticData(SyntheticSequences sequences,
                                                                const BatchOptions& options) {
  HIPPODROME_ASSIGN_OR_RETURN(ExampleOrder order,
                              ExampleOrder::Create(std::ssize(sequences), options));
  return std::make_unique<SyntheticData>(std::move(sequences), options.evaluation, order);
}

}  // namespace hippodrome
