#include "tools/train/step/micro_batch.h"

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

}  // namespace hippodrome
