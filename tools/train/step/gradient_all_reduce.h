// Sums the gradients of devices, bucket by bucket, while the backward goes on.
#ifndef HIPPODROME_TOOLS_TRAIN_STEP_GRADIENT_ALL_REDUCE_H_
#define HIPPODROME_TOOLS_TRAIN_STEP_GRADIENT_ALL_REDUCE_H_

#include <cstddef>
#include <utility>
#include <vector>

#include "kernels/all_reduce.h"
#include "tools/train/step/parameter_blocks.h"

namespace hippodrome {

// Of one device, which has added up the gradients of its micro-batches itself: they are complete
// when the backward of the last one is.
//
//   <micro-batches, but for the last>
//   sum.Begin();  <the last one, Complete() as the tape tells>  sum.Finish();
//
// Not thread-safe: for the thread of the device.
class GradientAllReduce {
 public:
  // Of backend `r` of `all_reduce`, which must outlive it as the parameters must.
  GradientAllReduce(std::vector<Bucket> buckets, AllReduce& all_reduce, size_t r)
      : buckets_(std::move(buckets)), progress_(buckets_), all_reduce_(all_reduce), r_(r) {}

  void Begin() { progress_.Begin(); }
  // Nothing more will be added to the parameter's gradient.
  void Complete(const Parameter& parameter);
  // All gradients are complete; what the device is given from now on sees the sums.
  void Finish();

 private:
  void Sum(const std::vector<size_t>& buckets);

  const std::vector<Bucket> buckets_;
  BucketProgress progress_;
  AllReduce& all_reduce_;
  const size_t r_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TRAIN_STEP_GRADIENT_ALL_REDUCE_H_
