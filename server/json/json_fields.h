// Typed reading of a JSON object, with errors that name the field.
#ifndef HIPPODROME_SERVER_JSON_JSON_FIELDS_H_
#define HIPPODROME_SERVER_JSON_JSON_FIELDS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/json/json_parse.h"

namespace hippodrome {

// The member `name`, or null when it is absent or JSON null.
const Json* Find(const Json& object, const char* name);

// A member of that type, or nothing when it is absent or null. Errors: kInvalidArgument naming the
// field, what was expected and what was found. Integers may be written as 16.0 or 1e3, and must fit
// into int64_t (or uint64_t for the seed, whose negative values wrap).
absl::StatusOr<std::optional<bool>> BoolField(const Json& object, const char* name);
absl::StatusOr<std::optional<std::string>> TextField(const Json& object, const char* name);
absl::StatusOr<std::optional<int64_t>> IntegerField(const Json& object, const char* name);
absl::StatusOr<std::optional<uint64_t>> SeedField(const Json& object, const char* name);
absl::StatusOr<std::optional<double>> NumberField(const Json& object, const char* name);

// The members of an object as ReadGenerationNumbers() wants them.
struct JsonNumbers {
  absl::StatusOr<std::optional<int64_t>> Integer(const char* name) const {
    return IntegerField(object, name);
  }
  absl::StatusOr<std::optional<double>> Number(const char* name) const {
    return NumberField(object, name);
  }

  const Json& object;
};

// An array of token ids. Errors name `field`.
absl::StatusOr<std::vector<int32_t>> TokenIdArray(const Json& array, const char* field);

// "model", or "".
absl::StatusOr<std::string> ModelField(const Json& object);

// FieldError: expected `what`, found the type of `found`.
absl::Status WrongType(const char* field, const char* what, const Json& found);
// FieldError for a field of another server's interface that this one lacks.
absl::Status Unsupported(const char* field);

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_JSON_JSON_FIELDS_H_
