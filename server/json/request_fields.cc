#include "server/json/request_fields.h"

#include <algorithm>

#include "engine/base/field_error.h"

namespace hippodrome {

absl::Status RefuseUnknown(const Json& object, RequestFields fields) {
  for (const auto& [name, value] : object.items()) {
    const bool known = std::any_of(fields.begin(), fields.end(),
                                   [&](const RequestField& field) { return field.name == name; });
    if (!known) return FieldError(name, "this server does not know this field");
  }
  return absl::OkStatus();
}

}  // namespace hippodrome
