// Status makers that take std::string, for a distribution whose absl::string_view is its own type.
#ifndef HIPPODROME_ENGINE_BASE_STATUS_H_
#define HIPPODROME_ENGINE_BASE_STATUS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hippodrome {

inline absl::Status InvalidArgument(const std::string& message) {
  return absl::InvalidArgumentError(message);
}
inline absl::Status NotFound(const std::string& message) { return absl::NotFoundError(message); }
inline absl::Status FailedPrecondition(const std::string& message) {
  return absl::FailedPreconditionError(message);
}
inline absl::Status ResourceExhausted(const std::string& message) {
  return absl::ResourceExhaustedError(message);
}
inline absl::Status Unavailable(const std::string& message) {
  return absl::UnavailableError(message);
}
inline absl::Status Unimplemented(const std::string& message) {
  return absl::UnimplementedError(message);
}
inline absl::Status Internal(const std::string& message) { return absl::InternalError(message); }

// The message of `status` as the standard string that the rest of the program uses.
inline std::string Message(const absl::Status& status) {
  return std::string(status.message().data(), status.message().size());
}

}  // namespace hippodrome

// Returns from the enclosing function when `expression` is not OK.
#define HIPPODROME_RETURN_IF_ERROR(expression) \
  do {                                         \
    absl::Status status_ = (expression);       \
    if (!status_.ok()) return status_;         \
  } while (false)

#define HIPPODROME_CONCAT_INNER(a, b) a##b
#define HIPPODROME_CONCAT(a, b) HIPPODROME_CONCAT_INNER(a, b)

// HIPPODROME_ASSIGN_OR_RETURN(auto x, F()); declares x, or returns the status of F().
#define HIPPODROME_ASSIGN_OR_RETURN(declaration, expression) \
  HIPPODROME_ASSIGN_OR_RETURN_INNER(HIPPODROME_CONCAT(result_, __LINE__), declaration, expression)
#define HIPPODROME_ASSIGN_OR_RETURN_INNER(result, declaration, expression) \
  auto result = (expression);                                              \
  if (!result.ok()) return std::move(result).status();                     \
  declaration = *std::move(result)

#endif  // HIPPODROME_ENGINE_BASE_STATUS_H_
