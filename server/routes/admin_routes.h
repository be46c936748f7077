// What operators ask and say on a listener of their own, which no client can fill.
#ifndef HIPPODROME_SERVER_HTTP_ADMIN_ROUTES_H_
#define HIPPODROME_SERVER_HTTP_ADMIN_ROUTES_H_

#include <vector>

#include "server/access/access_control.h"
#include "server/handlers/model_repository.h"
#include "server/http/http_router.h"
#include "server/http/http_types.h"
#include "server/routes/http_routes.h"

namespace hippodrome {

// GET /health /ready /metrics /version, as of the main listener, /openapi.json of these routes, and
// what changes the server, which belongs here and not there: POST /v2/repository/index,
// /v2/repository/models/{model}/load and .../unload, Triton's extension for model repositories.
// Thread-safe.
class AdminRoutes {
 public:
  // What it is given must outlive this.
  AdminRoutes(HttpRoutes& routes, ModelRepository& repository, const AccessControl& access);
  AdminRoutes(const AdminRoutes&) = delete;
  AdminRoutes& operator=(const AdminRoutes&) = delete;

  // As HttpGate. What is not open takes the API key of an administrator, where there are keys.
  void Route(HttpRequest& head) const;

  HttpReply Handle(HttpRequest request);
  const std::vector<HttpRoute>& routes() const { return router_.routes(); }

 private:
  HttpReply PassOn(const HttpRequest& request);
  HttpReply DescribeRoutes(const HttpRequest& request);
  HttpReply Index(const HttpRequest& request);
  // Answered once the model is loaded, or is not; who leaves before does not stop it.
  HttpReply Load(const HttpRequest& request);
  // Answered at once; requests in progress may still run.
  HttpReply Unload(const HttpRequest& request);

  HttpRoutes& routes_;
  ModelRepository& repository_;
  const AccessControl& access_;
  const HttpRouter router_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_HTTP_ADMIN_ROUTES_H_
