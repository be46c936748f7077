// All routes over some models, on a port of their own.
#ifndef HIPPODROME_TESTS_TESTING_ROUTES_SERVER_H_
#define HIPPODROME_TESTS_TESTING_ROUTES_SERVER_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/handlers/handlers.h"
#include "server/http/http_server.h"
#include "server/metrics/metrics.h"
#include "server/routes/http_routes.h"

namespace hippodrome {

class RoutesServer {
 public:
  // `metrics` outlives it.
  RoutesServer(std::vector<std::unique_ptr<ServedModel>> models, Metrics& metrics)
      : handlers_(std::move(models), RequestLimits()),
        options_({.address = "127.0.0.1:0"}),
        routes_(handlers_, metrics, options_),
        server_(HttpServer::Start(
                    options_,
                    [this](const HttpRequest& request) { return routes_.Handle(request); },
                    &metrics)
                    .value()) {}

  const std::string& address() const { return server_->address(); }
  Handlers& handlers() { return handlers_; }
  HttpRoutes& routes() { return routes_; }

 private:
  Handlers handlers_;
  const HttpOptions options_;
  HttpRoutes routes_;
  const std::unique_ptr<HttpServer> server_;  // stops first
};

}  // namespace hippodrome

#endif  // HIPPODROME_TESTS_TESTING_ROUTES_SERVER_H_
