#include "server/http/http_replies.h"

#include <string>
#include <utility>

#include "server/json/json_responses.h"
#include "server/status_map.h"

namespace hippodrome {

HttpReply Ok(std::string body) {
  HttpReply reply;
  reply.response.body = std::move(body);
  return reply;
}

void HandOver(HttpRequest& request, HttpReply& reply) {
  if (request.route != nullptr) {
    reply.method = request.route->method;
    reply.route = request.route->pattern;
  }
  if (request.permit == nullptr) return;
  reply.key = request.permit->key();
  if (reply.work != nullptr) reply.permit = request.permit;
  request.permit.reset();
}

HttpResponse ErrorResponse(const absl::Status& status, ErrorShape shape) {
  HttpResponse response;
  response.status = HttpStatus(status);
  response.limited = IsLimitError(status);
  response.body = ErrorBody(status, shape);
  if (absl::IsUnauthenticated(status)) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  if (const int seconds = RetryAfterSeconds(status); seconds > 0) {
    response.headers.emplace_back("Retry-After", std::to_string(seconds));
  }
  return response;
}

HttpResponse ErrorResponse(int http_status, const std::string& code, const std::string& message) {
  HttpResponse response;
  response.status = http_status;
  response.body = ErrorBody(http_status, code, message);
  return response;
}

HttpReply Failed(const absl::Status& status, ErrorShape shape) {
  HttpReply reply;
  reply.response = ErrorResponse(status, shape);
  return reply;
}

}  // namespace hippodrome
