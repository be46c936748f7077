// The fields of request bodies: what is accepted, and what the OpenAPI document says of it.
#ifndef HIPPODROME_SERVER_JSON_REQUEST_FIELDS_H_
#define HIPPODROME_SERVER_JSON_REQUEST_FIELDS_H_

#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "engine/parameter_ranges.h"
#include "server/json/json_fields.h"

namespace hippodrome {

struct RequestField {
  const char* name;
  const char* schema =
      "";                  // JSON Schema, as JSON: types, ranges, default; "" where `range` says it
  const char* about = "";  // "" where the name says it
  bool required = false;
  const ParameterRange* range = nullptr;
};

// The field that has the range's name.
constexpr RequestField Ranged(const ParameterRange& range) {
  return {.name = range.name, .about = range.about, .range = &range};
}

// Schemas that several bodies have.
inline constexpr char kFlagSchema[] = R"({"type": "boolean", "default": false})";
inline constexpr char kTrueSchema[] = R"({"type": "boolean", "default": true})";
inline constexpr char kCountSchema[] = R"({"type": "integer", "minimum": 1})";
inline constexpr char kTextSchema[] = R"({"type": "string"})";
inline constexpr char kTextOrTextsSchema[] =
    R"({"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]})";
inline constexpr char kTextsOrIdsSchema[] = R"({"oneOf": [{"type": "string"},
    {"type": "array", "items": {"oneOf": [{"type": "string"}, {"type": "integer"},
      {"type": "array", "items": {"type": "integer"}}]}}]})";
inline constexpr char kSeedSchema[] =
    R"({"type": "integer", "minimum": -9223372036854775808, "maximum": 18446744073709551615})";
inline constexpr char kSideSchema[] =
    R"({"type": "string", "enum": ["Left", "Right", "left", "right"], "default": "Right"})";

using RequestFields = std::span<const RequestField>;

// What every body may have beside its fields, because it is about bookkeeping and changes no
// answer: user, metadata, store, service_tier, safety_identifier, prompt_cache_key (OpenAI),
// options (Hugging Face).
std::span<const std::string_view> IgnoredFields();

// Refuses members that are neither among `fields`, nor null, nor ignored. Errors: the FieldError of
// the first one.
absl::Status CheckFields(const Json& object, RequestFields fields);

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_JSON_REQUEST_FIELDS_H_
