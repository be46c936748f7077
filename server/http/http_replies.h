// The replies that all routes give.
#ifndef HIPPODROME_SERVER_HTTP_HTTP_REPLIES_H_
#define HIPPODROME_SERVER_HTTP_HTTP_REPLIES_H_

#include <string>

#include "absl/status/status.h"
#include "server/http/http_types.h"

namespace hippodrome {

HttpReply Ok(std::string body);
// The response for a failed request, with Retry-After where trying again helps.
HttpResponse ErrorResponse(const absl::Status& status, ErrorShape shape = ErrorShape::kOpenAi);
// An error that only HTTP has; `code` in OpenAI's sense.
HttpResponse ErrorResponse(int http_status, const std::string& code, const std::string& message);
HttpReply Failed(const absl::Status& status, ErrorShape shape = ErrorShape::kOpenAi);

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_HTTP_HTTP_REPLIES_H_
