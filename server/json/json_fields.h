// Typed reading of a JSON object, with errors that name the field.
#ifndef HIPPODROME_SERVER_JSON_JSON_FIELDS_H_
#define HIPPODROME_SERVER_JSON_JSON_FIELDS_H_

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/json/json_parse.h"

namespace hippodrome {

// Refuses members that are neither `known`, nor null, nor among those that every path ignores,
// because they are about bookkeeping and change no answer: user, metadata, store, service_tier,
// safety_identifier, prompt_cache_key (OpenAI), options (Hugging Face). Errors: the FieldError of
// the first one.
absl::Status CheckFields(const Json& object, std::span<const std::string_view> known);
inline absl::Status CheckFields(const Json& object, std::initializer_list<std::string_view> known) {
  return CheckFields(object, std::span(known.begin(), known.size()));
}

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
