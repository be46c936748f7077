// What operators ask on a listener of their own, which no client can fill.
#ifndef HIPPODROME_SERVER_HTTP_ADMIN_ROUTES_H_
#define HIPPODROME_SERVER_HTTP_ADMIN_ROUTES_H_

#include "server/http/http_types.h"
#include "server/routes/http_routes.h"

namespace hippodrome {

// GET /health /ready /metrics /version, as of the main listener. What changes the server, as
// loading a model, belongs here and not there. Thread-safe.
class AdminRoutes {
 public:
  // `routes` must outlive this.
  explicit AdminRoutes(HttpRoutes& routes) : routes_(routes) {}

  HttpReply Handle(HttpRequest request);

 private:
  HttpRoutes& routes_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_HTTP_ADMIN_ROUTES_H_
