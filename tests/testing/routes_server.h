// All routes over some models, on a port of their own.
#ifndef HIPPODROME_TESTS_TESTING_ROUTES_SERVER_H_
#define HIPPODROME_TESTS_TESTING_ROUTES_SERVER_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/access/access_control.h"
#include "server/handlers/handlers.h"
#include "server/http/http_server.h"
#include "server/metrics/metrics.h"
#include "server/metrics/state_store_metrics.h"
#include "server/routes/http_routes.h"
#include "server/states/memory_store.h"

namespace hippodrome {

class RoutesServer {
 public:
  // `metrics` outlives it. `api_keys`: as ServerOptions.
  RoutesServer(std::vector<std::unique_ptr<ServedModel>> models, Metrics& metrics,
               const std::string& api_keys = "")
      : access_(api_keys, metrics),
        handlers_(std::move(models), RequestLimits()),
        options_({.address = "127.0.0.1:0"}),
        store_metrics_(metrics.registry()),
        routes_(handlers_, metrics, access_, options_) {
    handlers_.states().SetStore(MakeMemoryStore(int64_t{1} << 30, store_metrics_));
    access_.Reload().IgnoreError();
    server_ =
        HttpServer::Start(
            options_, [this](HttpRequest request) { return routes_.Handle(std::move(request)); },
            &metrics, nullptr, [this](HttpRequest& head) { routes_.Route(head); })
            .value();
  }

  const std::string& address() const { return server_->address(); }
  AccessControl& access() { return access_; }
  Handlers& handlers() { return handlers_; }
  HttpRoutes& routes() { return routes_; }

 private:
  AccessControl access_;
  Handlers handlers_;
  const HttpOptions options_;
  StateStoreMetrics store_metrics_;
  HttpRoutes routes_;
  std::unique_ptr<HttpServer> server_;  // stops first
};

}  // namespace hippodrome

#endif  // HIPPODROME_TESTS_TESTING_ROUTES_SERVER_H_
