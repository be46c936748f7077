#include "engine/base/field_error.h"

#include "absl/strings/cord.h"
#include "engine/base/status.h"

namespace hippodrome {
namespace {

constexpr char kFieldPayload[] = "hippodrome.field";

}  // namespace

absl::Status FieldError(const std::string& field, const std::string& message) {
  absl::Status status = InvalidArgument(field + ": " + message);
  status.SetPayload(kFieldPayload, absl::Cord(field));
  return status;
}

std::string Field(const absl::Status& status) {
  const auto payload = status.GetPayload(kFieldPayload);
  return payload ? std::string(*payload) : "";
}

}  // namespace hippodrome
