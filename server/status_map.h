// The only place where errors become gRPC codes, HTTP statuses and error bodies.
#ifndef HIPPODROME_SERVER_STATUS_MAP_H_
#define HIPPODROME_SERVER_STATUS_MAP_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace hippodrome {

// Whose clients read an error body: OpenAI's, those of text-generation-inference, KServe's.
enum class ErrorShape : uint8_t { kOpenAi, kTgi, kKServe };

// The number of a gRPC status code.
int GrpcCode(const absl::Status& status);
int HttpStatus(const absl::Status& status);
// Seconds after which a client may try again what was refused for want of room; 0: that cannot
// help.
int RetryAfterSeconds(const absl::Status& status);
// kResourceExhausted for what a limit of the client's own refuses, however idle the server is; it
// may try again after so many seconds.
absl::Status LimitError(const std::string& message, int seconds);
bool IsLimitError(const absl::Status& status);
// `status`, an error, with an HTTP status that says more than that of its code.
absl::Status WithHttpStatus(absl::Status status, int http_status);
// The "type" of an OpenAI error: "invalid_request_error", ...
const char* ErrorType(int http_status);
// The "error_type" of an error of text-generation-inference: "validation", ...
const char* TgiErrorType(int http_status);
// The "code" of an OpenAI error: the canonical name in lower case, "invalid_argument", ...
std::string ErrorCode(const absl::Status& status);

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_STATUS_MAP_H_
