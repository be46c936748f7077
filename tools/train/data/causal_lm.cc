#include "tools/train/data/causal_lm.h"

#include <algorithm>
#include <string>
#include <utility>

#include "engine/base/status.h"
#include "tools/train/data/example_random.h"

namespace hippodrome {
namespace {

class CausalLm final : public TrainingData {
 public:
  CausalLm(std::vector<int32_t> tokens, int64_t length, int64_t offsets, uint64_t seed,
           BatchSampler sampler)
      : tokens_(std::move(tokens)),
        length_(length),
        offsets_(offsets),
        seed_(seed),
        sampler_(sampler) {}

  int64_t batches() const override { return sampler_.batches(); }

  TrainingBatch Batch(int64_t index) const override {
    const int64_t offset = Offset(sampler_.Epoch(index));
    const std::vector<int64_t> windows = sampler_.Examples(index);
    TrainingBatch batch{.sequences = std::ssize(windows), .length = length_};
    for (const int64_t window : windows) {
      const auto first = tokens_.begin() + offset + window * length_;
      batch.ids.insert(batch.ids.end(), first, first + length_);
      batch.labels.insert(batch.labels.end(), first + 1, first + 1 + length_);
    }
    return batch;
  }

 private:
  // Where the first window of the epoch begins.
  int64_t Offset(int64_t epoch) const {
    return ExampleRandom(seed_, static_cast<uint64_t>(epoch), 1).Below(offsets_);
  }

  std::vector<int32_t> tokens_;
  int64_t length_;
  int64_t offsets_;  // offsets are below
  uint64_t seed_;
  BatchSampler sampler_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TrainingData>> MakeCausalLm(std::vector<int32_t> tokens,
                                                           int64_t length,
                                                           const BatchOptions& options) {
  const int64_t size = std::ssize(tokens);
  if (length < 1 || length >= size) {
    return InvalidArgument("windows have " + std::to_string(length) + " tokens, expected 1 to " +
                           std::to_string(size - 1) + ", one less than there are");
  }
  // Every offset below `length` leaves room for as many windows, unless there is only one.
  const int64_t windows =
      options.evaluation ? (size - 1) / length : std::max<int64_t>(1, size / length - 1);
  const int64_t offsets = options.evaluation ? 1 : std::min(length, size - windows * length);
  HIPPODROME_ASSIGN_OR_RETURN(BatchSampler sampler, BatchSampler::Create(windows, options));
  return std::make_unique<CausalLm>(std::move(tokens), length, offsets, options.seed, sampler);
}

}  // namespace hippodrome
