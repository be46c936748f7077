// The fields of request bodies: what is accepted, and what the OpenAPI document says of it.
#ifndef HIPPODROME_SERVER_JSON_REQUEST_FIELDS_H_
#define HIPPODROME_SERVER_JSON_REQUEST_FIELDS_H_

#include <span>

#include "absl/status/status.h"
#include "server/json/json_fields.h"

namespace hippodrome {

struct RequestField {
  const char* name;
  const char* schema;  // JSON Schema, as JSON: types, ranges, default
  const char* about;   // "" where the name says it
  bool required = false;
};

using RequestFields = std::span<const RequestField>;

// CheckFields() in json_fields.h, by the names of `fields`.
absl::Status RefuseUnknown(const Json& object, RequestFields fields);

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_JSON_REQUEST_FIELDS_H_
