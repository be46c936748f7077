#include "tools/train/data/synthetic_tasks.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "engine/base/status.h"
#include "tools/train/data/numpy_generator.h"

namespace hippodrome {
namespace {

// choice() with probabilities 1 / (V - 2) for all ids but the first and the last, which are 0: the
// place of a uniform number among their running sums.
class NormalTokens {
 public:
  explicit NormalTokens(int64_t vocabulary) : sums_(static_cast<size_t>(vocabulary)) {
    const double p = 1.0 / static_cast<double>(vocabulary - 2);
    for (size_t id = 1; id < sums_.size(); ++id) {
      sums_[id] = sums_[id - 1] + (id + 1 < sums_.size() ? p : 0.0);
    }
    for (double& sum : sums_) sum /= sums_.back();
  }

  int32_t Draw(NumpyGenerator& random) const {
    const auto place = std::upper_bound(sums_.begin(), sums_.end(), random.Uniform());
    return static_cast<int32_t>(place - sums_.begin());
  }

 private:
  std::vector<double> sums_;
};

// `length` + 2 tokens of `vocabulary` ids, drawn as the published generator draws them.
std::vector<int32_t> InductionHeadSequence(int64_t vocabulary, int64_t length,
                                           NumpyGenerator& random) {
  const NormalTokens tokens(vocabulary);
  const int32_t prefix = static_cast<int32_t>(vocabulary - 1);
  std::vector<int32_t> sequence;
  for (int64_t i = 0; i < length; ++i) sequence.push_back(tokens.Draw(random));
  sequence.push_back(prefix);
  random.Uniform();  // whether there is one trigger or as many as asked for: one
  const size_t trigger = static_cast<size_t>(random.Integer(length - 2));
  sequence[trigger] = prefix;
  sequence.push_back(sequence[trigger + 1]);
  return sequence;
}

// `length` + 3 tokens.
std::vector<int32_t> AssociativeRecallSequence(int64_t vocabulary, int64_t length,
                                               NumpyGenerator& random) {
  const int64_t keys = (vocabulary - 2) / 2;
  const int64_t values = vocabulary - 2 - keys;
  // Ids of keys are 1 to `keys`, those of values follow.
  std::vector<int32_t> value_of(static_cast<size_t>(keys));
  for (int32_t& value : value_of) {
    value = static_cast<int32_t>(1 + keys + random.Integer(values));
  }
  std::vector<int64_t> present;  // keys of the sequence in order of appearance
  const auto is_present = [&](int64_t key) {
    return std::find(present.begin(), present.end(), key) != present.end();
  };
  std::vector<int32_t> sequence;
  const auto append = [&](int64_t key) {
    sequence.push_back(static_cast<int32_t>(1 + key));
    sequence.push_back(value_of[static_cast<size_t>(key)]);
  };
  for (int64_t i = 0; i < length / 2; ++i) {
    const int64_t key = random.Integer(keys);
    append(key);
    if (!is_present(key)) present.push_back(key);
  }
  int64_t asked = random.Integer(keys);
  if (!is_present(asked)) asked = present[random.Integer(std::ssize(present))];
  sequence.push_back(static_cast<int32_t>(vocabulary - 1));
  append(asked);
  return sequence;
}

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
  SyntheticData(SyntheticSequences sequences, bool last_only, BatchSampler sampler)
      : sequences_(std::move(sequences)), last_only_(last_only), sampler_(sampler) {}

  int64_t batches() const override { return sampler_.batches(); }

  TrainingBatch Batch(int64_t index) const override {
    const std::vector<int64_t> examples = sampler_.Examples(index);
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
  BatchSampler sampler_;
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
  HIPPODROME_ASSIGN_OR_RETURN(BatchSampler sampler,
                              BatchSampler::Create(std::ssize(sequences), options));
  return std::make_unique<SyntheticData>(std::move(sequences), options.evaluation, sampler);
}

}  // namespace hippodrome
