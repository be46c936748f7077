#include <string>
#include <utility>

#include "engine/base/field_error.h"
#include "server/http/http_replies.h"
#include "server/json/json_encoding_requests.h"
#include "server/json/json_encoding_responses.h"
#include "server/routes/answer_work.h"
#include "server/routes/http_routes.h"

namespace hippodrome {
namespace {

// The work behind `call`, whose answer becomes body(call, answer).
template <typename Call, typename Request, typename Response, typename Body>
HttpReply Run(const HttpRequest& http, absl::StatusOr<Call> call, EncodingHandlers& handlers,
              Answer<Response> (EncodingHandlers::*handle)(const Request&, const Caller&),
              Body body) {
  if (!call.ok()) return Failed(call.status());
  Answer<Response> answer = (handlers.*handle)(call->request, http.caller());
  if (answer.ok()) call->request.set_model((*answer)->model());
  return AnswerReply(
      http, std::move(answer),
      [body, call = *std::move(call)](const Response& result, HttpResponse& response) {
        response.body = body(call, result);
      });
}

// Refuses a call that expects embeddings of another size than the model's.
absl::StatusOr<EmbedCall> CheckSize(absl::StatusOr<EmbedCall> call,
                                    const EncodingHandlers& handlers) {
  if (!call.ok() || !call->dimensions) return call;
  const absl::StatusOr<v1::Model> model = handlers.GetModel(call->request.model());
  if (!model.ok()) return model.status();
  if (*call->dimensions == model->embedding_size()) return call;
  return FieldError("dimensions", "expected " + std::to_string(model->embedding_size()) +
                                      ", the size of the model's embeddings");
}

}  // namespace

HttpReply EncodingRoutes::Predict(const HttpRequest& request) {
  return Run(request, ParsePredict(request.body), handlers_.encoding(), &EncodingHandlers::Classify,
             PredictBody);
}

HttpReply EncodingRoutes::Embed(const HttpRequest& request) {
  EncodingHandlers& encoding = handlers_.encoding();
  const auto body = [](const EmbedCall&, const v1::EmbedResponse& response) {
    return EmbedBody(response);
  };
  return Run(request, CheckSize(ParseEmbed(request.body), encoding), encoding,
             &EncodingHandlers::Embed, body);
}

HttpReply EncodingRoutes::EmbedAll(const HttpRequest& request) {
  const auto body = [](const EmbedCall&, const v1::EmbedResponse& response) {
    return EmbedAllBody(response);
  };
  return Run(request, ParseEmbedAll(request.body), handlers_.encoding(), &EncodingHandlers::Embed,
             body);
}

HttpReply EncodingRoutes::Embeddings(const HttpRequest& request) {
  EncodingHandlers& encoding = handlers_.encoding();
  return Run(request, CheckSize(ParseEmbeddings(request.body), encoding), encoding,
             &EncodingHandlers::Embed, EmbeddingsBody);
}

HttpReply EncodingRoutes::FillMask(const HttpRequest& request) {
  return Run(request, ParseFillMask(request.body), handlers_.encoding(),
             &EncodingHandlers::FillMask, FillMaskBody);
}

HttpReply EncodingRoutes::TokenClassification(const HttpRequest& request) {
  return Run(request, ParseTokenClassification(request.body), handlers_.encoding(),
             &EncodingHandlers::TagTokens, TokenClassificationBody);
}

HttpReply EncodingRoutes::QuestionAnswering(const HttpRequest& request) {
  return Run(request, ParseQuestionAnswering(request.body), handlers_.encoding(),
             &EncodingHandlers::AnswerQuestion, QuestionAnsweringBody);
}

HttpReply EncodingRoutes::Info(const HttpRequest&) {
  absl::StatusOr<v1::Model> model = handlers_.encoding().GetModel("");
  if (!model.ok()) model = handlers_.GetModel("");
  if (!model.ok()) return Failed(model.status());
  return Ok(InfoBody(*model, handlers_.limits(), options_));
}

}  // namespace hippodrome
