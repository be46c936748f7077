#include "tools/command_line/strict_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "engine/base/one_line.h"
#include "engine/base/status.h"

namespace hippodrome {
namespace {

using Json = nlohmann::json;

bool IsText(const Json& value) {
  return value.is_string() && !value.get_ref<const std::string&>().empty();
}

// NaN, which no comparison accepts, for what is no number.
double AsNumber(const Json& value) { return value.is_number() ? value.get<double>() : NAN; }

}  // namespace

const char* StrictReader::Know(const char* name) {
  known_.emplace_back(name);
  return name;
}

int64_t StrictReader::Integer(const char* name, IntegerRange range,
                              std::optional<int64_t> fallback) {
  return reader_.Integer(Know(name), range, fallback);
}

double StrictReader::Positive(const char* name, double most, std::optional<double> fallback) {
  if (Find(name) == nullptr && !fallback.has_value()) {
    Reject(name, fmt::format("a number in (0, {}]", most));
  }
  return reader_.Positive(name, most, fallback.value_or(most));
}

double StrictReader::NotNegative(const char* name, double most, double fallback) {
  const Json* value = Find(name);
  if (value == nullptr) return fallback;
  const double number = AsNumber(*value);
  if (number >= 0 && number <= most) return number;
  Reject(name, fmt::format("a number in [0, {}]", most));
  return 0;
}

double StrictReader::BelowOne(const char* name, double fallback) {
  const Json* value = Find(name);
  if (value == nullptr) return fallback;
  const double number = AsNumber(*value);
  if (number >= 0 && number < 1) return number;
  Reject(name, "a number in [0, 1)");
  return 0;
}

bool StrictReader::Boolean(const char* name, bool fallback) {
  return reader_.Boolean(Know(name), fallback);
}

std::string StrictReader::Text(const char* name, const std::string& fallback) {
  return reader_.Text(Know(name), fallback);
}

std::optional<std::vector<std::string>> StrictReader::Texts(const char* name) {
  const Json* value = Find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_array() && std::all_of(value->begin(), value->end(), IsText)) {
    return value->get<std::vector<std::string>>();
  }
  Reject(name, "an array of strings");
  return std::nullopt;
}

std::vector<std::string> StrictReader::TextOrTexts(const char* name) {
  const Json* value = Find(name);
  if (value == nullptr) return {};
  if (IsText(*value)) return {value->get<std::string>()};
  if (value->is_array() && !value->empty() && std::all_of(value->begin(), value->end(), IsText)) {
    return value->get<std::vector<std::string>>();
  }
  Reject(name, "a string or an array of strings");
  return {};
}

const Json& StrictReader::Object(const char* name) {
  static const Json* const empty = new Json(Json::object());
  const Json* value = Find(name);
  if (value == nullptr) return *empty;
  if (value->is_object()) return *value;
  Reject(name, "an object");
  return *empty;
}

const Json* StrictReader::Find(const char* name) { return reader_.Find(Know(name)); }

absl::Status StrictReader::Finish() const {
  HIPPODROME_RETURN_IF_ERROR(reader_.status());
  for (const auto& [name, value] : object_.items()) {
    if (std::find(known_.begin(), known_.end(), name) != known_.end()) continue;
    std::vector<std::string> names = known_;
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return InvalidArgument(fmt::format("{}{} is unknown here, expected one of {}", prefix_,
                                       OneLine(name), fmt::join(names, ", ")));
  }
  return absl::OkStatus();
}

}  // namespace hippodrome
