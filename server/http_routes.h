// The HTTP interface: a codec over Handlers.
#ifndef HIPPODROME_SERVER_HTTP_ROUTES_H_
#define HIPPODROME_SERVER_HTTP_ROUTES_H_

#include <string>

#include "server/handlers.h"
#include "server/http_types.h"
#include "server/metrics.h"

namespace hippodrome {

// Routes: POST /v1/completions /tokenize /detokenize; GET /v1/models /health /ready /metrics
// /version. Errors are JSON, {"error": {"message", "type", "code", "param"}}. Thread-safe.
class HttpRoutes {
 public:
  // Both must outlive the routes and all work that they return.
  HttpRoutes(Handlers& handlers, Metrics& metrics) : handlers_(handlers), metrics_(metrics) {}

  HttpReply Handle(const HttpRequest& request);

 private:
  struct Route;
  static const Route* FindRoute(const std::string& path);

  HttpReply Completions(const HttpRequest& request);
  HttpReply Tokenize(const HttpRequest& request);
  HttpReply Detokenize(const HttpRequest& request);
  HttpReply ListModels(const HttpRequest& request);
  HttpReply Health(const HttpRequest& request);
  HttpReply Ready(const HttpRequest& request);
  HttpReply Scrape(const HttpRequest& request);
  HttpReply ShowVersion(const HttpRequest& request);

  // A failed request, counted.
  HttpReply Failed(const absl::Status& status);

  Handlers& handlers_;
  Metrics& metrics_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_HTTP_ROUTES_H_
