// Values without which a model cannot run.
#ifndef HIPPODROME_ENGINE_CHECKPOINT_FINITE_VALUES_H_
#define HIPPODROME_ENGINE_CHECKPOINT_FINITE_VALUES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/checkpoint/weights_source.h"

namespace hippodrome {

// As ReadFloats(), and an error for a value that is not finite: an SSM with a NaN anywhere poisons
// every later token, so it is found at load.
absl::StatusOr<HostFloats> ReadFinite(WeightsSource& source, const std::string& name,
                                      const std::vector<int64_t>& shape);

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_CHECKPOINT_FINITE_VALUES_H_
