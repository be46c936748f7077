#include "tools/train/data/encoded_examples.h"

#include <string>
#include <utility>

#include "engine/status.h"

namespace hippodrome {
namespace {

class EncodedData final : public TrainingData {
 public:
  EncodedData(EncodedExamples data, ExampleOrder order) : data_(std::move(data)), order_(order) {}

  int64_t batches() const override { return order_.batches(); }

  TrainingBatch Batch(int64_t index) const override {
    const std::vector<int64_t> examples = order_.Examples(index);
    TrainingBatch batch{.sequences = std::ssize(examples), .length = data_.length};
    for (const int64_t example : examples) Append(data_.examples[example], batch);
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

  EncodedExamples data_;
  ExampleOrder order_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TrainingData>> MakeEncodedData(EncodedExamples examples,
                                                              const BatchOptions& options) {
  HIPPODROME_ASSIGN_OR_RETURN(ExampleOrder order,
                              ExampleOrder::Create(std::ssize(examples.examples), options));
  return std::make_unique<EncodedData>(std::move(examples), order);
}

absl::StatusOr<EncodedExamples> NoExamples(const WordPieceTokenizer& tokenizer, int64_t length,
                                           int64_t row_labels) {
  if (length >= 3) {
    return EncodedExamples{.length = length, .pad = tokenizer.pad(), .row_labels = row_labels};
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
