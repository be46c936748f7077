#include "server/json/json_fields.h"

#include <limits>
#include <utility>

#include "engine/base/field_error.h"
#include "engine/base/status.h"

namespace hippodrome {
namespace {

constexpr int kMaxDepth = 64;

// Nesting of a text that may not be JSON at all; counted before parsing, which would build it.
bool TooDeep(const std::string& text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMaxDepth) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

bool IsInt64(const Json& value) {
  if (value.is_number_unsigned()) {
    return value.get<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  }
  return value.is_number_integer();
}

}  // namespace

absl::StatusOr<Json> ParseObject(const std::string& text) {
  if (TooDeep(text)) {
    return InvalidArgument("the body has more than " + std::to_string(kMaxDepth) +
                           " levels of nesting");
  }
  try {
    Json json = Json::parse(text);
    if (!json.is_object()) return InvalidArgument("the body must be a JSON object");
    return json;
  } catch (const Json::parse_error& error) {
    return InvalidArgument("the body is not valid JSON: error at byte " +
                           std::to_string(error.byte));
  } catch (const Json::exception&) {
    return InvalidArgument("the body is not valid JSON: a number is out of range");
  }
}

const Json* Find(const Json& object, const char* name) {
  const auto it = object.find(name);
  return it == object.end() || it->is_null() ? nullptr : &*it;
}

absl::Status WrongType(const char* field, const char* what, const Json& found) {
  return FieldError(field, std::string("expected ") + what + ", found " + found.type_name());
}

absl::Status Unsupported(const char* field) {
  return FieldError(field, "this server does not support it");
}

absl::StatusOr<std::optional<bool>> BoolField(const Json& object, const char* name) {
  const Json* value = Find(object, name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) return WrongType(name, "true or false", *value);
  return value->get<bool>();
}

absl::StatusOr<std::optional<std::string>> TextField(const Json& object, const char* name) {
  const Json* value = Find(object, name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) return WrongType(name, "a string", *value);
  return value->get<std::string>();
}

absl::StatusOr<std::optional<int64_t>> IntegerField(const Json& object, const char* name) {
  const Json* value = Find(object, name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number_integer()) return WrongType(name, "an integer", *value);
  if (!IsInt64(*value)) return FieldError(name, "the number is too large");
  return value->get<int64_t>();
}

absl::StatusOr<std::optional<uint64_t>> SeedField(const Json& object, const char* name) {
  const Json* value = Find(object, name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number_integer()) return WrongType(name, "an integer", *value);
  return value->get<uint64_t>();
}

absl::StatusOr<std::optional<double>> NumberField(const Json& object, const char* name) {
  const Json* value = Find(object, name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) return WrongType(name, "a number", *value);
  return value->get<double>();
}

absl::StatusOr<std::string> ModelField(const Json& object) {
  HIPPODROME_ASSIGN_OR_RETURN(auto model, TextField(object, "model"));
  return std::move(model).value_or("");
}

absl::StatusOr<std::vector<int32_t>> TokenIdArray(const Json& array, const char* field) {
  if (!array.is_array()) return WrongType(field, "an array of token ids", array);
  std::vector<int32_t> ids;
  ids.reserve(array.size());
  for (const Json& id : array) {
    if (!id.is_number_integer()) return WrongType(field, "token ids", id);
    const bool fits = IsInt64(id) && id.get<int64_t>() >= 0 &&
                      id.get<int64_t>() <= std::numeric_limits<int32_t>::max();
    if (!fits) return FieldError(field, "token id " + id.dump() + " does not exist");
    ids.push_back(id.get<int32_t>());
  }
  return ids;
}

}  // namespace hippodrome
