// Values without which a model cannot run.
#ifndef HIPPODROME_ENGINE_CHECKPOINT_FINITE_VALUES_H_
#define HIPPODROME_ENGINE_CHECKPOINT_FINITE_VALUES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/checkpoint/weights_source.h"

namespace hippodrome {

// As ReadFloats(), and an error for a value that is not finite: a NaN poisons every later token,
// so it is found at load.
absl::StatusOr<HostFloats> ReadFinite(WeightsSource& source, const std::string& name,
                                      const std::vector<int64_t>& shape);

// kInvalidArgument, naming the tensor and the element, if one of a tensor's values is not finite as
// f32. Takes about as long as reading them.
absl::Status CheckFinite(const TensorView& tensor);

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_CHECKPOINT_FINITE_VALUES_H_
