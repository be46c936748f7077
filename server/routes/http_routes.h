// The HTTP interface: a codec over Handlers and, for encoders, EncodingHandlers.
#ifndef HIPPODROME_SERVER_HTTP_HTTP_ROUTES_H_
#define HIPPODROME_SERVER_HTTP_HTTP_ROUTES_H_

#include <functional>
#include <vector>

#include "server/access/access_control.h"
#include "server/handlers/handlers.h"
#include "server/http/cors.h"
#include "server/http/http_router.h"
#include "server/http/http_types.h"
#include "server/json/json_requests.h"
#include "server/metrics/metrics.h"
#include "server/options.h"
#include "server/page/page.h"
#include "server/routes/batch_routes.h"
#include "server/routes/kserve_routes.h"
#include "server/routes/state_routes.h"
#include "server/routes/tei_routes.h"
#include "server/routes/tgi_routes.h"

namespace hippodrome {

// TEI's /predict, /embed, /embed_all and /info, OpenAI's /v1/embeddings, and /fill_mask,
// /token_classification and /question_answering in the shapes of Hugging Face's inference
// interface. Thread-safe.
class EncodingRoutes {
 public:
  // `handlers` must outlive the routes and all work that they return; `options` are those of the
  // server, for /info.
  EncodingRoutes(Handlers& handlers, const HttpOptions& options)
      : handlers_(handlers), options_(options) {}

  HttpReply Predict(const HttpRequest& request);
  HttpReply Embed(const HttpRequest& request);
  HttpReply EmbedAll(const HttpRequest& request);
  HttpReply Embeddings(const HttpRequest& request);
  HttpReply FillMask(const HttpRequest& request);
  HttpReply TokenClassification(const HttpRequest& request);
  HttpReply QuestionAnswering(const HttpRequest& request);
  // Of the first encoder; without one, of the first model.
  HttpReply Info(const HttpRequest& request);

 private:
  Handlers& handlers_;
  const HttpOptions options_;
};

// Routes: GET / is the page; POST /v1/completions /tokenize /detokenize; GET /tokenizer_info
// /v1/models /v1/models/{id}, /v1/states, /v1/files and /v1/batches and what is below them, /health
// /ready /metrics /version; and those of EncodingRoutes. Errors are JSON, {"error": {"message",
// "type", "code", "param"}}. All of them need an API key where there are any, but those whose
// HttpRoute says otherwise, and preflights of CORS. Thread-safe.
class HttpRoutes {
 public:
  // What it is given must outlive the routes and all work that they return; but `options`, those of
  // the server, for /info.
  HttpRoutes(Handlers& handlers, Metrics& metrics, const AccessControl& access,
             const HttpOptions& options, const BatchStoreOptions& batches = {});
  HttpRoutes(const HttpRoutes&) = delete;
  HttpRoutes& operator=(const HttpRoutes&) = delete;

  // As HttpGate.
  void Route(HttpRequest& head) const;
  // Answers a request, which Route() need not have seen.
  HttpReply Handle(HttpRequest request);
  // Answers a request that the caller has admitted.
  HttpReply PassOn(HttpRequest request);
  BatchRoutes& batches() { return batches_; }
  const std::vector<HttpRoute>& routes() const { return router_.routes(); }

 private:
  HttpReply HandleRouted(HttpRequest request);
  // What make() returns, or the error that it ends with.
  static HttpReply Answer(const HttpRequest& request, const std::function<HttpReply()>& make);
  // With what all replies have.
  HttpReply Complete(HttpRequest& request, HttpReply reply) const;

  HttpReply Completions(const HttpRequest& request);
  HttpReply Complete(CompletionCall call, const HttpRequest& request);
  HttpReply NoChats(const HttpRequest& request);
  HttpReply Tokenize(const HttpRequest& request);
  HttpReply Detokenize(const HttpRequest& request);
  // Of the first model that has one.
  HttpReply ShowTokenizer(const HttpRequest& request);
  HttpReply ListModels(const HttpRequest& request);
  HttpReply GetModel(const HttpRequest& request);
  HttpReply Health(const HttpRequest& request);
  HttpReply Ready(const HttpRequest& request);
  HttpReply Scrape(const HttpRequest& request);
  HttpReply DescribeRoutes(const HttpRequest& request);
  HttpReply ShowVersion(const HttpRequest& request);

  Handlers& handlers_;
  Metrics& metrics_;
  const AccessControl& access_;
  const int64_t max_body_bytes_;
  EncodingRoutes encoding_;
  TgiRoutes tgi_;
  TeiRoutes tei_;
  KServeRoutes kserve_;
  StateRoutes states_;
  BatchRoutes batches_;
  const Page page_;
  const HttpRouter router_;
  const Cors cors_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_HTTP_HTTP_ROUTES_H_
