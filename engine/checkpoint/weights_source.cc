#include "engine/checkpoint/weights_source.h"

#include "engine/status.h"

namespace hippodrome {

absl::StatusOr<std::vector<float>> ReadFloats(WeightsSource& source, const std::string& name,
                                              const std::vector<int64_t>& shape) {
  HIPPODROME_ASSIGN_OR_RETURN(const TensorView tensor, source.Get(name, shape));
  HIPPODROME_ASSIGN_OR_RETURN(std::vector<float> values, ToFloats(tensor));
  source.Drop(tensor);
  return values;
}

}  // namespace hippodrome
