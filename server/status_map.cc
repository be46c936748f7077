#include "server/status_map.h"

#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"

namespace hippodrome {
namespace {

// The payload of a LimitError().
constexpr char kLimit[] = "hippodrome/retry-after";
// The payload of WithHttpStatus().
constexpr char kHttpStatus[] = "hippodrome/http-status";

// A number that was put into a status, or nothing.
std::optional<int> Payload(const absl::Status& status, const char* name) {
  int number = 0;
  const auto text = status.GetPayload(name);
  if (!text || !absl::SimpleAtoi(std::string(*text), &number)) return std::nullopt;
  return number;
}

void SetPayload(absl::Status& status, const char* name, int number) {
  // Of a view: Clang and GCC have different names for the constructor that takes a string.
  status.SetPayload(name, absl::Cord(absl::string_view(std::to_string(number))));
}

}  // namespace

// Abseil's canonical codes are numbered as gRPC's.
int GrpcCode(const absl::Status& status) { return static_cast<int>(status.code()); }

int HttpStatus(const absl::Status& status) {
  if (const std::optional<int> number = Payload(status, kHttpStatus)) return *number;
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

absl::Status LimitError(const std::string& message, int seconds) {
  absl::Status status = absl::ResourceExhaustedError(message);
  SetPayload(status, kLimit, seconds);
  return status;
}

bool IsLimitError(const absl::Status& status) { return status.GetPayload(kLimit).has_value(); }

absl::Status WithHttpStatus(absl::Status status, int http_status) {
  SetPayload(status, kHttpStatus, http_status);
  return status;
}

int RetryAfterSeconds(const absl::Status& status) {
  if (const std::optional<int> seconds = Payload(status, kLimit)) return *seconds;
  return absl::IsResourceExhausted(status) || absl::IsUnavailable(status) ? 1 : 0;
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

const char* TgiErrorType(int http_status) {
  if (http_status == 429 || http_status == 503) return "overloaded";
  return http_status < 500 ? "validation" : "generation";
}

std::string ErrorCode(const absl::Status& status) {
  std::string name = absl::StatusCodeToString(status.code());
  absl::AsciiStrToLower(&name);
  return name;
}

}  // namespace hippodrome
