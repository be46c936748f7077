// The HTTP interface of encoders: a codec over EncodingHandlers.
#ifndef HIPPODROME_SERVER_HTTP_ENCODING_ROUTES_H_
#define HIPPODROME_SERVER_HTTP_ENCODING_ROUTES_H_

#include "server/handlers/handlers.h"
#include "server/http/http_types.h"
#include "server/metrics/metrics.h"
#include "server/options.h"

namespace hippodrome {

// TEI's /predict, /embed and /info, OpenAI's /v1/embeddings, and /fill_mask, /token_classification
// and /question_answering in the shapes of Hugging Face's inference interface. Thread-safe.
class EncodingRoutes {
 public:
  // `handlers` and `metrics` must outlive the routes and all work that they return; `options` are
  // those of the server, for /info.
  EncodingRoutes(Handlers& handlers, Metrics& metrics, const HttpOptions& options)
      : handlers_(handlers), metrics_(metrics), options_(options) {}

  HttpReply Predict(const HttpRequest& request);
  HttpReply Embed(const HttpRequest& request);
  HttpReply Embeddings(const HttpRequest& request);
  HttpReply FillMask(const HttpRequest& request);
  HttpReply TokenClassification(const HttpRequest& request);
  HttpReply QuestionAnswering(const HttpRequest& request);
  // Of the first encoder; without one, of the first model.
  HttpReply Info(const HttpRequest& request);

 private:
  Handlers& handlers_;
  Metrics& metrics_;
  const HttpOptions options_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_HTTP_ENCODING_ROUTES_H_
