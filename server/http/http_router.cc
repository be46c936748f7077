#include "server/http/http_router.h"

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "server/guarded.h"
#include "server/http/cors.h"
#include "server/http/http_replies.h"
#include "server/http/query.h"

namespace hippodrome {
namespace {

bool IsParameter(const std::string& segment) { return !segment.empty() && segment[0] == '{'; }

// Decoded after splitting, so that %2F does not split.
std::optional<std::vector<std::string>> Segments(const std::string& path) {
  std::vector<std::string> segments;
  for (const std::string& part : std::vector<std::string>(absl::StrSplit(path, '/'))) {
    std::optional<std::string> segment = DecodePercent(part);
    if (!segment) return std::nullopt;
    segments.push_back(*std::move(segment));
  }
  return segments;
}

bool Matches(const std::vector<std::string>& pattern, const std::vector<std::string>& path) {
  return std::equal(pattern.begin(), pattern.end(), path.begin(), path.end(),
                    [](const std::string& expected, const std::string& found) {
                      return IsParameter(expected) ? !found.empty() : expected == found;
                    });
}

void AddMethod(std::vector<std::string>& methods, const std::string& method) {
  if (std::find(methods.begin(), methods.end(), method) == methods.end()) methods.push_back(method);
}

HttpResponse Options(const std::string& allow) {
  HttpResponse response;
  response.status = 204;
  response.headers.emplace_back("Allow", allow);
  return response;
}

HttpResponse WrongMethod(const HttpRequest& request, const std::string& allow) {
  HttpResponse response = ErrorResponse(
      405, "wrong_method", request.path + " takes " + allow + ", not " + request.method);
  response.headers.emplace_back("Allow", allow);
  return response;
}

}  // namespace

HttpRouter::HttpRouter(std::vector<HttpRoute> routes) : routes_(std::move(routes)) {
  for (const HttpRoute& route : routes_) {
    patterns_.push_back({absl::StrSplit(route.pattern, '/')});
  }
}

void HttpRouter::Open(HttpRequest& head, const AccessControl& control, Access least) const {
  head.routed = true;
  head.answer = Resolve(head);
  Access access = least;
  if (head.route != nullptr && head.route->access != Access::kKey) access = head.route->access;
  const bool preflight = head.answer && head.answer->status == 204 && IsPreflight(head);
  if (preflight) access = Access::kOpen;
  std::optional<std::string_view> authorization;
  const auto field = head.headers.find("authorization");
  if (field != head.headers.end()) authorization = field->second;
  absl::StatusOr<std::shared_ptr<CallPermit>> permit =
      Guarded([&] { return control.Admit(authorization, access); });
  if (permit.ok()) {
    head.permit = *std::move(permit);
  } else {
    head.answer = ErrorResponse(permit.status(),
                                head.route == nullptr ? ErrorShape::kOpenAi : head.route->errors);
  }
}

std::optional<HttpResponse> HttpRouter::Resolve(HttpRequest& request) const {
  // Of the server as a whole.
  if (request.method == "OPTIONS" && request.path == "*") {
    return Options("GET, HEAD, POST, OPTIONS");
  }
  const auto path = Segments(request.path);
  if (!path) {
    return ErrorResponse(400, "bad_path", "the path has '%' without two hexadecimal digits");
  }
  const std::string method = request.method == "HEAD" ? "GET" : request.method;
  std::vector<std::string> methods;
  for (size_t i = 0; i < routes_.size(); ++i) {
    const std::vector<std::string>& pattern = patterns_[i].segments;
    if (!Matches(pattern, *path)) continue;
    AddMethod(methods, routes_[i].method);
    if (method != routes_[i].method) continue;
    request.route = &routes_[i];
    for (size_t s = 0; s < pattern.size(); ++s) {
      if (!IsParameter(pattern[s])) continue;
      request.parameters[pattern[s].substr(1, pattern[s].size() - 2)] = (*path)[s];
    }
    return std::nullopt;
  }
  if (methods.empty()) return ErrorResponse(404, "unknown_route", "there is no " + request.path);
  if (std::find(methods.begin(), methods.end(), "GET") != methods.end()) methods.push_back("HEAD");
  methods.push_back("OPTIONS");
  const std::string allow = absl::StrJoin(methods, ", ");
  return request.method == "OPTIONS" ? Options(allow) : WrongMethod(request, allow);
}

}  // namespace hippodrome
