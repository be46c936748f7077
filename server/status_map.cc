#include "server/status_map.h"

#include "absl/strings/ascii.h"
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

// Abseil's canonical codes are numbered as gRPC's.
int GrpcCode(const absl::Status& status) { return static_cast<int>(status.code()); }

int HttpStatus(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return 200;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kFailedPrecondition:
      return 400;
    case absl::StatusCode::kUnauthenticated:
      return 401;
    case absl::StatusCode::kPermissionDenied:
      return 403;
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kAborted:
      return 409;
    case absl::StatusCode::kResourceExhausted:
      return 429;
    case absl::StatusCode::kCancelled:
      return 499;
    case absl::StatusCode::kUnimplemented:
      return 501;
    case absl::StatusCode::kUnavailable:
      return 503;
    case absl::StatusCode::kDeadlineExceeded:
      return 504;
    default:
      return 500;
  }
}

const char* ErrorType(int http_status) {
  switch (http_status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 429:
      return "rate_limit_error";
    case 503:
      return "overloaded_error";
    default:
      return http_status < 500 ? "invalid_request_error" : "server_error";
  }
}

std::string ErrorCode(const absl::Status& status) {
  std::string name = absl::StatusCodeToString(status.code());
  absl::AsciiStrToLower(&name);
  return name;
}

}  // namespace hippodrome
