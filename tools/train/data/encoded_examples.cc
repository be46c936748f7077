#include "tools/train/data/encoded_examples.h"

#include <span>
#include <string>
#include <utility>

#include "engine/base/status.h"
#include "tools/train/data/example_random.h"

namespace hippodrome {
namespace {

class EncodedData final : public TrainingData {
 public:
  EncodedData(EncodedExamples data, BatchSampler sampler, const BatchOptions& options)
      : data_(std::move(data)), sampler_(sampler), seed_(options.seed) {
    if (options.evaluation) data_.token_dropout = 0;
  }

  int64_t batches() const override { return sampler_.batches(); }

  TrainingBatch Batch(int64_t index) const override {
    const std::vector<int64_t> examples = sampler_.Examples(index);
    TrainingBatch batch{.sequences = std::ssize(examples), .length = data_.length};
    for (const int64_t example : examples) {
      const size_t first = batch.ids.size();
      Append(data_.examples[example], batch);
      if (data_.token_dropout == 0) continue;
      ExampleRandom random(seed_, static_cast<uint64_t>(sampler_.Epoch(index)),
                           static_cast<uint64_t>(example));
      Drop(std::span(batch.ids).subspan(first), random);
    }
    return batch;
  }

 private:
  void Append(const EncodedExample& example, TrainingBatch& batch) const {
    const std::vector<int32_t> ones(example.ids.size(), 1);
    AppendPadded(example.ids, data_.length, data_.pad, batch.ids);
    AppendPadded(example.types, data_.length, 0, batch.types);
    AppendPadded(ones, data_.length, 0, batch.mask);
    if (data_.row_labels == 0) {
      batch.targets.push_back(example.target);
    } else {
      AppendPadded(example.labels, data_.row_labels, -1, batch.labels);
    }
  }

  void Drop(std::span<int32_t> ids, ExampleRandom& random) const {
    for (int32_t& id : ids) {
      const bool of_text = id != data_.pad && id != data_.cls && id != data_.sep;
      if (of_text && random.Uniform() < data_.token_dropout) id = data_.mask;
    }
  }

  EncodedExamples data_;
  BatchSampler sampler_;
  uint64_t seed_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TrainingData>> MakeEncodedData(EncodedExamples examples,
                                                              const BatchOptions& options) {
  HIPPODROME_ASSIGN_OR_RETURN(BatchSampler sampler,
                              BatchSampler::Create(std::ssize(examples.examples), options));
  return std::make_unique<EncodedData>(std::move(examples), sampler, options);
}

absl::StatusOr<EncodedExamples> NoExamples(const WordPieceTokenizer& tokenizer, int64_t length,
                                           int64_t row_labels) {
  if (length >= 3) {
    return EncodedExamples{.length = length,
                           .pad = tokenizer.pad(),
                           .cls = tokenizer.cls(),
                           .sep = tokenizer.sep(),
                           .mask = tokenizer.mask(),
                           .row_labels = row_labels};
  }
  return InvalidArgument("inputs have " + std::to_string(length) +
                         " tokens, expected at least 3: [CLS], one of the text and [SEP]");
}

void AppendPadded(const std::vector<int32_t>& values, int64_t length, int32_t fill,
                  std::vector<int32_t>& row) {
  row.insert(row.end(), values.begin(), values.end());
  row.resize(row.size() + static_cast<size_t>(length - std::ssize(values)), fill);
}

}  // namespace hippodrome
