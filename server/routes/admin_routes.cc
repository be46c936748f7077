#include "server/routes/admin_routes.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "server/http/http_replies.h"

namespace hippodrome {
namespace {

constexpr std::string_view kAdminPaths[] = {"/health", "/ready", "/metrics", "/version"};

}  // namespace

HttpReply AdminRoutes::Handle(HttpRequest request) {
  const auto* const end = std::end(kAdminPaths);
  if (std::find(std::begin(kAdminPaths), end, request.path) != end) {
    return routes_.Handle(std::move(request));
  }
  HttpReply reply;
  reply.response =
      ErrorResponse(404, "unknown_route", "there is no " + request.path + " on the admin listener");
  return reply;
}

}  // namespace hippodrome
