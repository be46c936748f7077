#include "tools/train/step/micro_batch.h"

#include <algorithm>
#include <vector>

namespace hippodrome {
namespace {

// The part of an array that has as many values for every sequence, or none.
template <typename Value>
std::vector<Value> Part(const std::vector<Value>& values, int64_t sequences, int64_t first,
                        int64_t count) {
  const int64_t each = static_cast<int64_t>(values.size()) / sequences;
  return {values.begin() + first * each, values.begin() + (first + count) * each};
}

BatchLoss LearnOne(const TrainingBatch& batch, const MicroBatches& how, int64_t first,
                   Trainee& trainee) {
  const int64_t count = std::min(how.sequences, batch.sequences - first);
  return trainee.Learn(SliceBatch(batch, first, count), how.terms,
                       how.seed + static_cast<uint64_t>(first));
}

}  // namespace

TrainingBatch SliceBatch(const TrainingBatch& batch, int64_t first, int64_t count) {
  const int64_t n = batch.sequences;
  return {.sequences = count,
          .length = batch.length,
          .ids = Part(batch.ids, n, first, count),
          .types = Part(batch.types, n, first, count),
          .mask = Part(batch.mask, n, first, count),
          .labels = Part(batch.labels, n, first, count),
          .targets = Part(batch.targets, n, first, count)};
}

std::vector<BatchLoss> Learn(const TrainingBatch& batch, const MicroBatches& how, Share share,
                             GradientAllReduce* sum, Tape& tape, Trainee& trainee) {
  tape.ZeroGradients();
  tape.OnCompleteGradient(nullptr);
  std::vector<BatchLoss> losses;
  for (int64_t first = share.begin; first < share.end; first += how.sequences) {
    if (sum != nullptr && first + how.sequences >= share.end) {
      sum->Begin();
      tape.OnCompleteGradient([sum](const Parameter& p) { sum->Complete(p); });
    }
    losses.push_back(LearnOne(batch, how, first, trainee));
  }
  sum == nullptr ? tape.CollectGradients() : sum->Finish();
  return losses;
}

std::vector<BatchLoss> Learn(const TrainingBatch& batch, const MicroBatches& how, GradientSum& sum,
                             Tape& tape, Trainee& trainee) {
  std::vector<BatchLoss> losses;
  sum.Begin();
  for (int64_t i = sum.share().begin; i < sum.share().end; ++i) {
    tape.ZeroGradients();
    sum.BeginMicroBatch(i);
    losses.push_back(LearnOne(batch, how, i * how.sequences, trainee));
    sum.EndMicroBatch();
  }
  return losses;
}

}  // namespace hippodrome
