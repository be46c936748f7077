// The parameters of a model in training, as a source of weights.
#ifndef HIPPODROME_ENGINE_CHECKPOINT_PARAMETER_WEIGHTS_H_
#define HIPPODROME_ENGINE_CHECKPOINT_PARAMETER_WEIGHTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/checkpoint/weights_source.h"
#include "kernels/tape/parameters.h"

namespace hippodrome {

// Gives the host copies, as they are when they are read. `parameters` must outlive it.
class ParameterWeights final : public WeightsSource {
 public:
  explicit ParameterWeights(Parameters& parameters) : parameters_(parameters) {}

  absl::StatusOr<TensorView> Get(const std::string& name,
                                 const std::vector<int64_t>& shape) override;
  void Drop(const TensorView& /*tensor*/) override {}
  bool keeps() const override { return true; }

 private:
  Parameters& parameters_;
};

// Adds every float tensor of `file` to `parameters`, as f32. Errors: kInvalidArgument for a tensor
// of another type, as those of quantised matrices.
absl::Status AddParameters(const SafetensorsFile& file, Parameters& parameters);

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_CHECKPOINT_PARAMETER_WEIGHTS_H_
