// Cross-origin resource sharing: which web pages of other origins may read the answers.
#ifndef HIPPODROME_SERVER_HTTP_CORS_H_
#define HIPPODROME_SERVER_HTTP_CORS_H_

#include <string>
#include <vector>

#include "server/http/http_types.h"

namespace hippodrome {

// Whether a browser asks what a page may do, which it does without the page's headers.
bool IsPreflight(const HttpRequest& request);

// Adds the Access-Control headers of the Fetch standard. Credentials that a browser keeps (cookies)
// are never allowed; an Authorization header that a page sets is. Thread-safe.
class Cors {
 public:
  // `origins` as in HttpOptions::cors_origins. None: nothing is ever added.
  explicit Cors(std::vector<std::string> origins);

  // `reply` to `request` with what its origin may have: errors and streams too. A preflight,
  // OPTIONS with Access-Control-Request-Method, was answered with the methods of its path in Allow.
  HttpReply Allow(const HttpRequest& request, HttpReply reply) const;

 private:
  bool Allows(const HttpRequest& request) const;

  const std::vector<std::string> origins_;
  const bool any_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_HTTP_CORS_H_
