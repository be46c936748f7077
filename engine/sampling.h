// Sampling parameters as clients give them, and the only place of their ranges.
#ifndef HIPPODROME_ENGINE_SAMPLING_H_
#define HIPPODROME_ENGINE_SAMPLING_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/backend.h"

namespace hippodrome {

// What SamplingParameters says of each; not narrowed and not checked.
struct SamplingFields {
  float temperature = 1;  // [0, 100]
  int64_t top_k = 0;      // [0, 2^30]
  float top_p = 1;        // (0, 1]
  float min_p = 0;        // [0, 1]
  uint64_t seed = 0;
};

// Errors: the FieldError of the first field that is out of its range, as is what is not a number.
absl::StatusOr<SamplingParameters> ToSamplingParameters(const SamplingFields& fields);

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_SAMPLING_H_
