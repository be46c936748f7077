// The OpenAPI document of the routes.
#ifndef HIPPODROME_SERVER_HTTP_OPENAPI_H_
#define HIPPODROME_SERVER_HTTP_OPENAPI_H_

#include <optional>
#include <span>
#include <string>

#include "server/http/http_types.h"
#include "server/json/request_fields.h"

namespace hippodrome {

// The fields of the JSON body that a route takes; nothing for routes without one, or for /tokenize,
// which takes two shapes.
std::optional<RequestFields> BodyFields(const std::string& pattern);

// OpenAPI 3.1, as JSON: every route with its parameters, its request body and its errors.
std::string OpenApiBody(std::span<const HttpRoute> routes);

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_HTTP_OPENAPI_H_
