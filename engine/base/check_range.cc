#include "engine/base/check_range.h"

#include "engine/base/field_error.h"
#include "engine/base/status.h"

namespace hippodrome {

absl::Status CheckRange(const std::string& what, std::span<const int32_t> values, int64_t limit) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] >= 0 && values[i] < limit) continue;
    return InvalidArgument(what + " " + std::to_string(i) + " is " + std::to_string(values[i]) +
                           ", expected a value in [0, " + std::to_string(limit) + ")");
  }
  return absl::OkStatus();
}

absl::Status CheckTokenIds(const std::string& field, std::span<const int32_t> ids,
                           int64_t vocab_size) {
  const absl::Status status = CheckRange("token", ids, vocab_size);
  return status.ok() ? status : FieldError(field, Message(status));
}

}  // namespace hippodrome
