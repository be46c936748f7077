// The routes of text-generation-inference.
#ifndef HIPPODROME_SERVER_HTTP_TGI_ROUTES_H_
#define HIPPODROME_SERVER_HTTP_TGI_ROUTES_H_

#include <string>

#include "absl/status/statusor.h"
#include "server/handlers/handlers.h"
#include "server/http/http_types.h"
#include "server/json/tgi_json.h"

namespace hippodrome {

// /generate, /generate_stream, and / which streams if the body says so. The text ends before a stop
// string, which TGI leaves in it. Thread-safe.
class TgiRoutes {
 public:
  // `handlers` must outlive the routes and all work that they return.
  explicit TgiRoutes(Handlers& handlers) : handlers_(handlers) {}

  HttpReply Generate(const HttpRequest& request);
  HttpReply GenerateStream(const HttpRequest& request);
  HttpReply Root(const HttpRequest& request);

 private:
  enum class Form : uint8_t { kWhole, kStream, kAsAsked };

  // The call of a body on a path of that form.
  static absl::StatusOr<TgiCall> ReadCall(const std::string& body, Form form);
  HttpReply Answer(const HttpRequest& request, Form form);

  Handlers& handlers_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_HTTP_TGI_ROUTES_H_
