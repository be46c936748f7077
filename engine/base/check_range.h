// The one range check of ids, slots and masks that come from outside.
#ifndef HIPPODROME_ENGINE_BASE_CHECK_RANGE_H_
#define HIPPODROME_ENGINE_BASE_CHECK_RANGE_H_

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"

namespace hippodrome {

// OK if all `values` are in [0, limit); otherwise kInvalidArgument, "WHAT 3 is 99, expected a value
// in [0, 50)", of the first that is not, counted from 0.
absl::Status CheckRange(const std::string& what, std::span<const int32_t> values, int64_t limit);

// The ids of a request's field against a vocabulary: CheckRange() as a FieldError.
absl::Status CheckTokenIds(const std::string& field, std::span<const int32_t> ids,
                           int64_t vocab_size);

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_BASE_CHECK_RANGE_H_
