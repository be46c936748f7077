// Errors about one field of what a client asks for.
#ifndef HIPPODROME_ENGINE_BASE_FIELD_ERROR_H_
#define HIPPODROME_ENGINE_BASE_FIELD_ERROR_H_

#include <string>

#include "absl/status/status.h"

namespace hippodrome {

// InvalidArgument("FIELD: MESSAGE"), remembering the field.
absl::Status FieldError(const std::string& field, const std::string& message);
// The field at fault, or "".
std::string Field(const absl::Status& status);

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_BASE_FIELD_ERROR_H_
