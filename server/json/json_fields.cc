#include "server/json/json_fields.h"

#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "engine/base/field_error.h"
#include "engine/base/status.h"

namespace hippodrome {
namespace {

// Doubles are exact up to here.
constexpr double kLargestExact = 9007199254740992;

// The value of 5, 5.0 or 5e0 as the integers that it fits, or nothing.
template <typename Integer>
std::optional<Integer> AsInteger(const Json& value) {
  if (value.is_number_float()) {
    const double number = value.get<double>();
    if (std::abs(number) > kLargestExact || number != std::trunc(number)) return std::nullopt;
    return static_cast<Integer>(static_cast<int64_t>(number));
  }
  if (std::is_signed_v<Integer> && value.is_number_unsigned() &&
      value.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    return std::nullopt;
  }
  return value.get<Integer>();
}

// A member that is a whole number.
template <typename Integer>
absl::StatusOr<std::optional<Integer>> WholeField(const Json& object, const char* name) {
  const Json* value = Find(object, name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) return WrongType(name, "an integer", *value);
  const std::optional<Integer> integer = AsInteger<Integer>(*value);
  if (integer) return integer;
  const bool fraction = value->is_number_float() && std::abs(value->get<double>()) < kLargestExact;
  return FieldError(
      name, fraction ? "expected an integer, found " + value->dump() : "the number is too large");
}

}  // namespace

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
  return WholeField<int64_t>(object, name);
}

absl::StatusOr<std::optional<uint64_t>> SeedField(const Json& object, const char* name) {
  return WholeField<uint64_t>(object, name);
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
    if (!id.is_number()) return WrongType(field, "token ids", id);
    const int64_t value = AsInteger<int64_t>(id).value_or(-1);
    if (value < 0 || value > std::numeric_limits<int32_t>::max()) {
      return FieldError(field, "token id " + id.dump() + " does not exist");
    }
    ids.push_back(static_cast<int32_t>(value));
  }
  return ids;
}

}  // namespace hippodrome
