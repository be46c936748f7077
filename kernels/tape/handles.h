// What a tape gives to models in place of its backend's handles.
#ifndef HIPPODROME_KERNELS_TAPE_HANDLES_H_
#define HIPPODROME_KERNELS_TAPE_HANDLES_H_

#include <memory>
#include <utility>

#include "kernels/tape/trained_handles.h"

namespace hippodrome {

class TapedLinear final : public LinearWeights {
 public:
  explicit TapedLinear(std::shared_ptr<TrainedLinear> trained) : trained_(std::move(trained)) {}
  int64_t out() const override { return trained_->weights->out(); }
  int64_t in() const override { return trained_->weights->in(); }
  int64_t bytes() const override { return trained_->weights->bytes(); }
  const std::shared_ptr<TrainedLinear>& trained() const { return trained_; }

 private:
  std::shared_ptr<TrainedLinear> trained_;
};

class TapedH3 final : public H3Weights {
 public:
  explicit TapedH3(std::shared_ptr<TrainedH3> trained) : trained_(std::move(trained)) {}
  int64_t bytes() const override { return trained_->weights->bytes(); }
  const std::shared_ptr<TrainedH3>& trained() const { return trained_; }

 private:
  std::shared_ptr<TrainedH3> trained_;
};

class TapedLongConv final : public LongConvWeights {
 public:
  explicit TapedLongConv(std::shared_ptr<TrainedLongConv> trained) : trained_(std::move(trained)) {}
  int64_t longest() const override { return trained_->weights->longest(); }
  int64_t bytes() const override { return trained_->weights->bytes(); }
  const std::shared_ptr<TrainedLongConv>& trained() const { return trained_; }

 private:
  std::shared_ptr<TrainedLongConv> trained_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_KERNELS_TAPE_HANDLES_H_
