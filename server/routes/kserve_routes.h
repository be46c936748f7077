// The routes of the Open Inference Protocol, version 2, which KServe and Triton speak.
#ifndef HIPPODROME_SERVER_HTTP_KSERVE_ROUTES_H_
#define HIPPODROME_SERVER_HTTP_KSERVE_ROUTES_H_

#include "server/handlers/handlers.h"
#include "server/handlers/inference_handlers.h"
#include "server/http/http_types.h"

namespace hippodrome {

// Below /v2. {model} is required where it says so, {version} may be there. Thread-safe.
class KServeRoutes {
 public:
  // `handlers` must outlive the routes and all work that they return.
  explicit KServeRoutes(Handlers& handlers) : handlers_(handlers), inference_(handlers) {}

  HttpReply ServerMetadata(const HttpRequest& request);
  HttpReply ServerLive(const HttpRequest& request);
  HttpReply ServerReady(const HttpRequest& request);
  HttpReply ModelMetadata(const HttpRequest& request);
  HttpReply ModelReady(const HttpRequest& request);
  HttpReply Infer(const HttpRequest& request);
  HttpReply Generate(const HttpRequest& request);
  HttpReply GenerateStream(const HttpRequest& request);

 private:
  HttpReply AnswerText(const HttpRequest& request, bool streamed);

  Handlers& handlers_;
  InferenceHandlers inference_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_HTTP_KSERVE_ROUTES_H_
