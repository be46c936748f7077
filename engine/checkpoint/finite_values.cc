#include "engine/checkpoint/finite_values.h"

#include <cmath>

#include "engine/base/status.h"

namespace hippodrome {

absl::StatusOr<HostFloats> ReadFinite(WeightsSource& source, const std::string& name,
                                      const std::vector<int64_t>& shape) {
  HIPPODROME_ASSIGN_OR_RETURN(HostFloats values, ReadFloats(source, name, shape));
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) {
      return InvalidArgument(name + ": element " + std::to_string(i) + " is not a finite number");
    }
  }
  return values;
}

}  // namespace hippodrome
