#include "server/status_map.h"

#include <gtest/gtest.h>

#include "engine/base/field_error.h"
#include "engine/base/status.h"

namespace hippodrome::status_map_test {
namespace {

struct Row {
  absl::Status status;
  int grpc;
  int http;
  std::string type;
  std::string code;
};

TEST(StatusMapTest, Table) {
  const Row rows[] = {
      {absl::CancelledError(), 1, 499, "invalid_request_error", "cancelled"},
      {absl::UnknownError(""), 2, 500, "server_error", "unknown"},
      {absl::InvalidArgumentError(""), 3, 400, "invalid_request_error", "invalid_argument"},
      {absl::DeadlineExceededError(""), 4, 504, "server_error", "deadline_exceeded"},
      {absl::NotFoundError(""), 5, 404, "not_found_error", "not_found"},
      {absl::PermissionDeniedError(""), 7, 403, "permission_error", "permission_denied"},
      {absl::ResourceExhaustedError(""), 8, 429, "rate_limit_error", "resource_exhausted"},
      {absl::FailedPreconditionError(""), 9, 400, "invalid_request_error", "failed_precondition"},
      {absl::OutOfRangeError(""), 11, 400, "invalid_request_error", "out_of_range"},
      {absl::UnimplementedError(""), 12, 501, "server_error", "unimplemented"},
      {absl::InternalError(""), 13, 500, "server_error", "internal"},
      {absl::UnavailableError(""), 14, 503, "overloaded_error", "unavailable"},
      {absl::UnauthenticatedError(""), 16, 401, "authentication_error", "unauthenticated"},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(GrpcCode(row.status), row.grpc);
    EXPECT_EQ(HttpStatus(row.status), row.http) << row.code;
    EXPECT_EQ(ErrorType(row.http), row.type) << row.code;
    EXPECT_EQ(ErrorCode(row.status), row.code);
  }
  EXPECT_EQ(HttpStatus(absl::OkStatus()), 200);
}

TEST(StatusMapTest, AFieldErrorNamesItsField) {
  const absl::Status status = FieldError("top_p", "2 is not in (0, 1]");
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(Message(status), "top_p: 2 is not in (0, 1]");
  EXPECT_EQ(Field(status), "top_p");
  EXPECT_EQ(Field(NotFound("x")), "");
}

TEST(StatusMapTest, AStatusMayHaveItsOwnHttpStatus) {
  const absl::Status status = WithHttpStatus(absl::FailedPreconditionError("m"), 409);
  EXPECT_EQ(HttpStatus(status), 409);
  EXPECT_EQ(GrpcCode(status), 9);
  EXPECT_EQ(status.message(), "m");
  EXPECT_EQ(RetryAfterSeconds(status), 0);
}

}  // namespace
}  // namespace hippodrome::status_map_test
