#include "server/json/request_fields.h"

#include <algorithm>

#include "engine/base/field_error.h"

namespace hippodrome {
namespace {

// Of a name that an error repeats.
constexpr size_t kShownNameBytes = 64;

constexpr std::string_view kIgnored[] = {"user",         "metadata",          "store",
                                         "service_tier", "safety_identifier", "prompt_cache_key",
                                         "options"};

}  // namespace

std::span<const std::string_view> IgnoredFields() { return kIgnored; }

absl::Status CheckFields(const Json& object, RequestFields fields) {
  for (const auto& [name, value] : object.items()) {
    const auto same = [&name = name](const RequestField& field) { return name == field.name; };
    if (value.is_null() || std::any_of(fields.begin(), fields.end(), same)) continue;
    if (std::find(std::begin(kIgnored), std::end(kIgnored), name) != std::end(kIgnored)) continue;
    return FieldError(name.substr(0, kShownNameBytes), "there is no such field here");
  }
  return absl::OkStatus();
}

}  // namespace hippodrome
