// The weights of a model in training, which follow its parameters.
#ifndef HIPPODROME_KERNELS_TAPE_TRAINED_HANDLES_H_
#define HIPPODROME_KERNELS_TAPE_TRAINED_HANDLES_H_

#include <memory>
#include <span>
#include <vector>

#include "kernels/tape/parameters.h"
#include "kernels/training_backend.h"

namespace hippodrome {

// What a handle is prepared from and where its gradients are summed. Shared by the handle, which
// the model owns, and the tape.
class TrainedWeights {
 public:
  virtual ~TrainedWeights() = default;
  // Prepares the weights again from the parameters' present values.
  virtual void Update() = 0;
  // Completes the gradients of the parameters.
  virtual void Collect() {}
};

// A matrix whose rows are those of its parts, one after another.
class TrainedLinear final : public TrainedWeights {
 public:
  // Throws std::logic_error for parts that are no parameters.
  TrainedLinear(TrainingBackend& backend, Parameters& parameters, std::span<const HostMatrix> parts,
                DType dtype);
  void Update() override;

  TrainingBackend& backend;
  std::unique_ptr<LinearWeights> weights;
  OwnedTensor gradient;  // [out, in]

 private:
  std::vector<Tensor> values_;  // of the parts
};

// A vector or table that was uploaded, in the type that operations want.
class TrainedRows final : public TrainedWeights {
 public:
  // `gradient`: of `place`, which must live as long as this.
  TrainedRows(TrainingBackend& backend, Parameter& parameter, Tensor place, Tensor gradient);
  void Update() override;

 private:
  TrainingBackend& backend_;
  Parameter& parameter_;
  Tensor place_;
};

// The parameters of one SSM, with host memory for their gradients.
class SsmParameters {
 public:
  // `host`: the spans of an SSM's description, empty for parameters that it lacks. Throws
  // std::logic_error for spans that are no parameters.
  SsmParameters(TrainingBackend& backend, Parameters& parameters,
                std::span<const std::span<const float>> host);

  // Brings the host copies up to date.
  void Fetch();
  // Where the gradient of span `i` is computed.
  std::span<float> staged(size_t i) { return fields_[i].staged; }
  // Copies what is staged to the gradients of the parameters.
  void Upload();

 private:
  struct Field {
    Parameter* parameter = nullptr;  // null for an empty span
    std::vector<float> staged;
    OwnedTensor gradient;
  };

  TrainingBackend& backend_;
  Parameters& parameters_;
  std::vector<Field> fields_;
};

class TrainedH3 final : public TrainedWeights {
 public:
  TrainedH3(TrainingBackend& backend, Parameters& parameters, const H3Parameters& ssm,
            int64_t longest, DType dtype);
  void Update() override;
  void Collect() override;

  std::unique_ptr<H3Weights> weights;
  std::unique_ptr<KernelGradients> sums;

 private:
  TrainingBackend& backend_;
  H3Parameters ssm_;  // over host copies
  SsmParameters parameters_;
  int64_t longest_;
  DType dtype_;
};

class TrainedLongConv final : public TrainedWeights {
 public:
  TrainedLongConv(TrainingBackend& backend, Parameters& parameters, const LongConvParameters& ssm,
                  int64_t longest, DType dtype);
  void Update() override;
  void Collect() override;

  std::unique_ptr<LongConvWeights> weights;
  std::unique_ptr<KernelGradients> sums;

 private:
  TrainingBackend& backend_;
  LongConvParameters ssm_;  // over host copies
  SsmParameters parameters_;
  int64_t longest_;
  DType dtype_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_KERNELS_TAPE_TRAINED_HANDLES_H_
