// The replies that all routes give.
#ifndef HIPPODROME_SERVER_HTTP_HTTP_REPLIES_H_
#define HIPPODROME_SERVER_HTTP_HTTP_REPLIES_H_

#include <string>

#include "absl/status/status.h"
#include "server/http/http_types.h"

namespace hippodrome {

HttpReply Ok(std::string body);
// Moves into the reply what is left of its request: for the record, and the permit of its key,
// which ends with the work.
void HandOver(HttpRequest& request, HttpReply& reply);
// The response for a failed request, with Retry-After where trying again helps, and
// WWW-Authenticate where an API key does.
HttpResponse ErrorResponse(const absl::Status& status, ErrorShape shape = ErrorShape::kOpenAi);
// An error that only HTTP has; `code` in OpenAI's sense.
HttpResponse ErrorResponse(int http_status, const std::string& code, const std::string& message);
HttpReply Failed(const absl::Status& status, ErrorShape shape = ErrorShape::kOpenAi);

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_HTTP_HTTP_REPLIES_H_
