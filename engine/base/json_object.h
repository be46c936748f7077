// Reading JSON objects from untrusted text.
#ifndef HIPPODROME_ENGINE_BASE_JSON_OBJECT_H_
#define HIPPODROME_ENGINE_BASE_JSON_OBJECT_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hippodrome {

// Parses an object of at most 64 levels. Errors: kInvalidArgument with the place.
absl::StatusOr<nlohmann::json> ParseJsonObject(const std::string& text);

// Both ends belong to it.
struct IntegerRange {
  int64_t low = 0;
  int64_t high = 0;
  bool even = false;  // odd integers do not belong to it
};

// Reads members of one object. A member that is absent or null gives the fallback, or an error
// without one. The first error stays in status(); after an error the values are the lowest allowed.
class ObjectReader {
 public:
  // `prefix` goes before the names in errors ("ssm_cfg."). `object` must outlive the reader.
  ObjectReader(const nlohmann::json& object, const std::string& prefix)
      : object_(object), prefix_(prefix) {}

  int64_t Integer(const char* name, IntegerRange range, std::optional<int64_t> fallback = {});
  // A number in (0, most].
  double Positive(const char* name, double most, double fallback);
  bool Boolean(const char* name, bool fallback);
  std::string Text(const char* name, const std::string& fallback);
  // The member, or null when it is absent or JSON null.
  const nlohmann::json* Find(const char* name) const;

  // Notes the error "NAME is VALUE, expected WHAT".
  void Reject(const char* name, const std::string& what);
  const absl::Status& status() const { return status_; }

 private:
  const nlohmann::json& object_;
  const std::string prefix_;
  absl::Status status_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_BASE_JSON_OBJECT_H_
