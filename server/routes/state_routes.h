// /v1/states: states.proto over HTTP.
#ifndef HIPPODROME_SERVER_HTTP_STATE_ROUTES_H_
#define HIPPODROME_SERVER_HTTP_STATE_ROUTES_H_

#include "server/handlers/state_handlers.h"
#include "server/http/http_types.h"

namespace hippodrome {

// Files are taken and given as application/octet-stream. All replies are made later, for a store
// may be a disk or another server. Thread-safe.
class StateRoutes {
 public:
  // `handlers` must outlive the routes and all that they return.
  explicit StateRoutes(StateHandlers& handlers) : handlers_(handlers) {}

  HttpReply List(const HttpRequest& request);
  // The file, in chunks.
  HttpReply Get(const HttpRequest& request);
  // Keeps the file that the body is; ?state_ttl=SECONDS.
  HttpReply Put(const HttpRequest& request);
  HttpReply Delete(const HttpRequest& request);
  HttpReply Fork(const HttpRequest& request);

 private:
  StateHandlers& handlers_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_HTTP_STATE_ROUTES_H_
