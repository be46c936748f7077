// The routes of text-embeddings-inference that EncodingRoutes does not have.
#ifndef HIPPODROME_SERVER_HTTP_TEI_ROUTES_H_
#define HIPPODROME_SERVER_HTTP_TEI_ROUTES_H_

#include <string>

#include "absl/status/statusor.h"
#include "server/handlers/handlers.h"
#include "server/http/http_types.h"

namespace hippodrome {

// /rerank, by a classifier of pairs with one label; /similarity; /decode; and /tokenize in TEI's
// shape, which has `inputs`. Thread-safe.
class TeiRoutes {
 public:
  // `handlers` must outlive the routes and all work that they return.
  explicit TeiRoutes(Handlers& handlers) : handlers_(handlers) {}

  HttpReply Rerank(const HttpRequest& request);
  HttpReply Similarity(const HttpRequest& request);
  HttpReply Tokenize(const HttpRequest& request);
  HttpReply Decode(const HttpRequest& request);

 private:
  // The model that a call of /rerank means, if it can do it.
  absl::StatusOr<std::string> FindReranker(const std::string& name) const;
  // The bodies of the answers.
  absl::StatusOr<std::string> TokenizeAll(const HttpRequest& request) const;
  absl::StatusOr<std::string> DecodeAll(const HttpRequest& request) const;

  Handlers& handlers_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_HTTP_TEI_ROUTES_H_
