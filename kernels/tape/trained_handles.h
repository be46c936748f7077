// The weights of a model in training, which follow its parameters, and the handles to them.
#ifndef HIPPODROME_KERNELS_TAPE_TRAINED_HANDLES_H_
#define HIPPODROME_KERNELS_TAPE_TRAINED_HANDLES_H_

#include <deque>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "kernels/tape/parameters.h"
#include "kernels/training_backend.h"

namespace hippodrome {

// What a handle is prepared from and where its gradients are summed. Shared by the handle, which
// the model owns, and the tape.
class TrainedHandle {
 public:
  virtual ~TrainedHandle() = default;
  // Prepares the weights again from the parameters' present values.
  virtual void Update() = 0;
  // Completes the gradients of the parameters.
  virtual void Collect() {}
  // What it is prepared from.
  virtual std::vector<Parameter*> parameters() const = 0;

  int64_t pending = 0;  // operations of a record that will add to its gradients
};

// A matrix whose rows are those of its parts, one after another.
class TrainedLinear final : public TrainedHandle {
 public:
  // Throws std::logic_error for parts that are no parameters.
  TrainedLinear(TrainingBackend& backend, Parameters& parameters, std::span<const HostMatrix> parts,
                DType dtype);
  void Update() override;
  std::vector<Parameter*> parameters() const override { return parts_; }

  TrainingBackend& backend;
  std::unique_ptr<LinearWeights> weights;
  OwnedTensor gradient;  // [out, in]

 private:
  std::vector<Parameter*> parts_;
};

// A vector or table that was uploaded, in the type that operations want.
class TrainedRows final : public TrainedHandle {
 public:
  // `gradient`: of `place`, which must live as long as this.
  TrainedRows(TrainingBackend& backend, Parameter& parameter, Tensor place, Tensor gradient);
  void Update() override;
  std::vector<Parameter*> parameters() const override { return {&parameter_}; }
  // Whether `x` is the place, or a part of it.
  bool Holds(Tensor x) const;

 private:
  TrainingBackend& backend_;
  Parameter& parameter_;
  Tensor place_;
};

// The arrays of an SSM's parameters: where the host computes their gradients, and where these go.
class SsmArrays {
 public:
  SsmArrays(TrainingBackend& backend, Parameters& parameters)
      : backend_(backend), parameters_(parameters) {}

  // Takes in an array of the SSM's description, unless it is empty, and gives where its gradient is
  // computed. Throws std::logic_error for an array that is no parameter.
  std::span<float> Add(std::span<const float> values);

  // Brings the host copies of the parameters up to date.
  void Fetch();
  // Copies the computed gradients to those of the parameters.
  void Upload();
  std::vector<Parameter*> parameters() const;

 private:
  struct Array {
    Parameter& parameter;
    std::vector<float> host_gradient;
    OwnedTensor gradient;
  };

  TrainingBackend& backend_;
  Parameters& parameters_;
  std::deque<Array> arrays_;  // at addresses that stay
};

class TrainedH3 final : public TrainedHandle {
 public:
  TrainedH3(TrainingBackend& backend, Parameters& parameters, const H3Parameters& ssm,
            int64_t longest, DType dtype);
  void Update() override;
  void Collect() override;
  std::vector<Parameter*> parameters() const override { return arrays_.parameters(); }

  std::unique_ptr<H3ConvolutionWeights> weights;
  std::unique_ptr<H3Gradients> sums;

 private:
  TrainingBackend& backend_;
  H3Parameters ssm_;  // over host copies
  SsmArrays arrays_;
  H3ParameterGradients gradients_;  // over arrays_
  int64_t longest_;
  DType dtype_;
};

class TrainedLongConv final : public TrainedHandle {
 public:
  TrainedLongConv(TrainingBackend& backend, Parameters& parameters, const LongConvParameters& ssm,
                  int64_t longest, DType dtype);
  void Update() override;
  void Collect() override;
  std::vector<Parameter*> parameters() const override { return arrays_.parameters(); }

  std::unique_ptr<LongConvWeights> weights;
  std::unique_ptr<LongConvGradients> sums;

 private:
  TrainingBackend& backend_;
  LongConvParameters ssm_;  // over host copies
  SsmArrays arrays_;
  LongConvParameterGradients gradients_;  // over arrays_
  int64_t longest_;
  DType dtype_;
};

// ---- What models get in place of the backend's handles ------------------------------------------

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

// The SSM of a decoder, which training runs as a convolution.
class TapedSsm final : public SsmWeights {
 public:
  explicit TapedSsm(std::shared_ptr<TrainedLongConv> trained) : trained_(std::move(trained)) {}
  int64_t bytes() const override { return trained_->weights->bytes(); }
  const std::shared_ptr<TrainedLongConv>& trained() const { return trained_; }

 private:
  std::shared_ptr<TrainedLongConv> trained_;
};

// States of sequences that training takes whole: they stay empty.
class EmptyState final : public RecurrentState {
 public:
  explicit EmptyState(int64_t slots) : slots_(slots) {}
  int64_t slots() const override { return slots_; }
  int64_t bytes_per_slot() const override { return 0; }
  int64_t bytes_per_step() const override { return 0; }
  std::vector<StateArray> arrays() const override { return {}; }

 private:
  int64_t slots_;
};

class EmptyPages final : public KeyValuePages {
 public:
  EmptyPages(int64_t pages, int64_t page_tokens) : pages_(pages), page_tokens_(page_tokens) {}
  int64_t pages() const override { return pages_; }
  int64_t page_tokens() const override { return page_tokens_; }
  int64_t bytes_per_page() const override { return 0; }

 private:
  int64_t pages_;
  int64_t page_tokens_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_KERNELS_TAPE_TRAINED_HANDLES_H_
