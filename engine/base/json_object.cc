#include "engine/base/json_object.h"

#include <fmt/format.h>

#include "engine/base/one_line.h"
#include "engine/base/status.h"

namespace hippodrome {
namespace {

using Json = nlohmann::json;

std::string ValueText(const Json& value) {
  return OneLine(value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

// nullopt: not an integer that fits.
std::optional<int64_t> AsInteger(const Json& value) {
  if (!value.is_number_integer()) return std::nullopt;
  if (value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX) return std::nullopt;
  return value.get<int64_t>();
}

bool Contains(const IntegerRange& range, int64_t x) {
  return x >= range.low && x <= range.high && !(range.even && x % 2 != 0);
}

}  // namespace

absl::StatusOr<Json> ParseJsonObject(const std::string& text) {
  constexpr int kDeepest = 64;
  bool too_deep = false;
  // What lies deeper is dropped, so that it takes no memory.
  const auto keep = [&](int depth, Json::parse_event_t, Json&) {
    too_deep = too_deep || depth > kDeepest;
    return depth <= kDeepest;
  };
  try {
    Json json = Json::parse(text, keep);
    if (too_deep) return InvalidArgument("JSON nested deeper than 64 levels");
    if (!json.is_object()) {
      return InvalidArgument(std::string("expected a JSON object, found ") + json.type_name());
    }
    return json;
  } catch (const Json::exception& error) {
    const std::string what = error.what();
    return InvalidArgument("not JSON: " + OneLine(what.substr(what.find(']') + 2)));
  }
}

const Json* ObjectReader::Find(const char* name) const {
  const auto member = object_.find(name);
  return member == object_.end() || member->is_null() ? nullptr : &*member;
}

void ObjectReader::Reject(const char* name, const std::string& what) {
  if (!status_.ok()) return;
  const Json* value = Find(name);
  status_ = InvalidArgument(fmt::format("{}{} is {}, expected {}", prefix_, name,
                                        value == nullptr ? "missing" : ValueText(*value), what));
}

int64_t ObjectReader::Integer(const char* name, IntegerRange range,
                              std::optional<int64_t> fallback) {
  const Json* value = Find(name);
  if (value == nullptr && fallback.has_value()) return *fallback;
  const auto integer = value == nullptr ? std::nullopt : AsInteger(*value);
  if (integer.has_value() && Contains(range, *integer)) return *integer;
  Reject(name,
         fmt::format("an {}integer in [{}, {}]", range.even ? "even " : "", range.low, range.high));
  return range.low;
}

double ObjectReader::Positive(const char* name, double most, double fallback) {
  const Json* value = Find(name);
  if (value == nullptr) return fallback;
  const double number = value->is_number() ? value->get<double>() : 0.0;
  if (number > 0.0 && number <= most) return number;
  Reject(name, fmt::format("a number in (0, {}]", most));
  return most;
}

bool ObjectReader::Boolean(const char* name, bool fallback) {
  const Json* value = Find(name);
  if (value == nullptr) return fallback;
  if (value->is_boolean()) return value->get<bool>();
  Reject(name, "true or false");
  return fallback;
}

std::string ObjectReader::Text(const char* name, const std::string& fallback) {
  const Json* value = Find(name);
  if (value == nullptr) return fallback;
  if (value->is_string()) return value->get<std::string>();
  Reject(name, "a string");
  return fallback;
}

}  // namespace hippodrome
