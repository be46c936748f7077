#include "engine/checkpoint/weights_source.h"

#include "engine/base/status.h"

namespace hippodrome {

absl::StatusOr<HostFloats> ReadFloats(WeightsSource& source, const std::string& name,
                                      const std::vector<int64_t>& shape) {
  HIPPODROME_ASSIGN_OR_RETURN(const TensorView tensor, source.Get(name, shape));
  if (source.keeps()) {
    return HostFloats(std::span(reinterpret_cast<const float*>(tensor.data.data()),
                                static_cast<size_t>(tensor.elements())));
  }
  HIPPODROME_ASSIGN_OR_RETURN(std::vector<float> values, ToFloats(tensor));
  source.Drop(tensor);
  return HostFloats(std::move(values));
}

DType FileWeights::TypeOf(const std::string& name) const {
  const TensorView* tensor = file_.Find(name);
  return tensor == nullptr ? DType::kF32 : tensor->dtype;
}

}  // namespace hippodrome
