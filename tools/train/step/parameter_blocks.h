// The parameters that are trained, in the pieces in which ranks exchange them.
#ifndef HIPPODROME_TOOLS_TRAIN_STEP_PARAMETER_BLOCKS_H_
#define HIPPODROME_TOOLS_TRAIN_STEP_PARAMETER_BLOCKS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "kernels/tape/parameters.h"

namespace hippodrome {

// Rows of a parameter.
struct ParameterBlock {
  Parameter* parameter = nullptr;
  int64_t row = 0;
  int64_t rows = 0;

  Tensor Of(Tensor whole) const { return whole.Rows(row, rows); }
  Tensor value() const { return Of(parameter->value); }
  Tensor gradient() const { return Of(parameter->gradient); }
  int64_t size() const { return rows * parameter->gradient.cols; }
};

// Blocks of different parameters.
using Bucket = std::vector<ParameterBlock>;

int64_t SizeOf(const Bucket& bucket);  // in values

// Large enough that a message is worth its latency, small enough for a cache.
inline constexpr int64_t kBucketValues = int64_t{1} << 20;

// Those that have a gradient and are no constants, in buckets of up to `values` values (more only
// where a row has more), from the last parameter to the first: about the order in which a backward
// completes them.
std::vector<Bucket> TrainedBuckets(Parameters& parameters, int64_t values = kBucketValues);

// Which buckets a backward has completed.
class BucketProgress {
 public:
  explicit BucketProgress(const std::vector<Bucket>& buckets);

  // A backward begins.
  void Begin();
  // It adds nothing more to the gradient of `parameter`: the buckets that are complete by that.
  std::vector<size_t> Complete(const Parameter& parameter);
  // It has ended: the buckets that it did not complete.
  std::vector<size_t> End();

 private:
  std::map<const Parameter*, std::vector<size_t>> buckets_of_;
  std::vector<int64_t> sizes_;  // of each bucket, in blocks
  std::vector<int64_t> left_;   // of each bucket, blocks that are not complete
};

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TRAIN_STEP_PARAMETER_BLOCKS_H_
