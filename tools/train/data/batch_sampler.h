// Which examples make up a batch.
#ifndef HIPPODROME_TOOLS_TRAIN_DATA_BATCH_SAMPLER_H_
#define HIPPODROME_TOOLS_TRAIN_DATA_BATCH_SAMPLER_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

namespace hippodrome {

struct BatchOptions {
  int64_t batch_size = 1;
  uint64_t seed = 0;
  // Every example once and in order, the last batch perhaps smaller, all epochs alike. Otherwise
  // each epoch is shuffled, and what does not fill a batch is left out of it.
  bool evaluation = false;
};

// The order of a fixed number of examples, epoch after epoch, without a table: a permutation is
// computed place by place.
class BatchSampler {
 public:
  // Errors: kInvalidArgument when there is no batch, or one of a size below 1.
  static absl::StatusOr<BatchSampler> Create(int64_t examples, const BatchOptions& options);

  int64_t batches() const { return batches_; }
  // Of batch `index` >= 0.
  int64_t Epoch(int64_t index) const { return index / batches_; }
  std::vector<int64_t> Examples(int64_t index) const;

 private:
  BatchSampler(int64_t examples, const BatchOptions& options, int64_t batches)
      : examples_(examples), options_(options), batches_(batches) {}

  int64_t examples_;
  BatchOptions options_;
  int64_t batches_;
};

// The image of `i` under a permutation of [0, n) that `key` chooses. REQUIRES: 0 <= i < n < 2^62.
int64_t Permuted(uint64_t key, int64_t n, int64_t i);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TRAIN_DATA_BATCH_SAMPLER_H_
