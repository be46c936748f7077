#include "engine/parameter_ranges.h"

#include <fmt/format.h>

#include "engine/base/field_error.h"

namespace hippodrome {
namespace {

template <typename Value>
absl::Status CheckIn(const ParameterRange& range, Value value) {
  const auto least = static_cast<Value>(range.least);
  const bool above = range.without_least ? value > least : value >= least;
  if (above && value <= static_cast<Value>(range.most)) return absl::OkStatus();
  return FieldError(range.name, fmt::format("{} is not in {}", value, ToString(range)));
}

}  // namespace

std::string ToString(const ParameterRange& range) {
  return fmt::format("{}{}, {}]", range.without_least ? '(' : '[', range.least, range.most);
}

absl::Status CheckParameter(const ParameterRange& range, float value) {
  return CheckIn(range, value);
}

absl::Status CheckParameter(const ParameterRange& range, int64_t value) {
  return CheckIn(range, value);
}

}  // namespace hippodrome
