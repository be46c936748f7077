// Which route answers a request: path patterns and methods.
#ifndef HIPPODROME_SERVER_HTTP_HTTP_ROUTER_H_
#define HIPPODROME_SERVER_HTTP_HTTP_ROUTER_H_

#include <optional>
#include <string>
#include <vector>

#include "server/http/http_types.h"

namespace hippodrome {

// Routes by path pattern: segments are compared after percent-decoding, one by one, and {name}
// takes any segment that is not empty. No path is rewritten first: "//", "/./" and a slash at the
// end make another path. A route for GET answers HEAD too. Thread-safe.
class HttpRouter {
 public:
  // Where patterns overlap, the first one that has the method answers.
  explicit HttpRouter(std::vector<HttpRoute> routes);

  const std::vector<HttpRoute>& routes() const { return routes_; }

  // Sets `route` and `parameters` of `request`, or returns the answer to one that has no route:
  // 404, 405 and the answer to OPTIONS with Allow, 400 for a path that cannot be decoded.
  std::optional<HttpResponse> Resolve(HttpRequest& request) const;

  // Resolves `head`, whose body may be missing, and admits its caller; else sets its answer. What
  // takes no key is said by the route, and preflights of paths that exist take none; all else takes
  // what its route says, but `least` at least, also where there is no route: without a right key
  // nobody learns which there are.
  void Open(HttpRequest& head, const AccessControl& control, Access least) const;

 private:
  struct Pattern {
    std::vector<std::string> segments;
  };

  const std::vector<HttpRoute> routes_;
  std::vector<Pattern> patterns_;  // of each route
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_HTTP_HTTP_ROUTER_H_
