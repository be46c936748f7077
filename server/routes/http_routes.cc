#include "server/routes/http_routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "engine/base/status.h"
#include "server/guarded.h"
#include "server/http/http_replies.h"
#include "server/json/json_fields.h"
#include "server/json/json_requests.h"
#include "server/json/json_responses.h"
#include "server/routes/completion_work.h"
#include "server/routes/openapi.h"
#include "server/status_map.h"
#include "server/version.h"

namespace hippodrome {
namespace {

// Whether a body of /tokenize has TEI's `inputs` and not vLLM's `prompt`. What is broken is for the
// one parser to say.
bool AsksTei(const std::string& body) {
  const absl::StatusOr<Json> json = ParseObject(body);
  return json.ok() && json->contains("inputs") && !json->contains("prompt");
}

// A completion may bring a state, in base64, beside as much as other bodies have.
int64_t MostCompletionBytes(const HttpOptions& http, const StateOptions& states) {
  if (!states.import) return http.max_body_bytes;
  const int64_t with_state = http.max_body_bytes + (states.max_state_bytes + 2) / 3 * 4;
  return std::max(http.max_body_bytes, std::min(with_state, http.max_body_bytes_total));
}

// What is parsed may take many times its bytes, but for one string.
absl::Status CheckBesideState(const std::string& body, int64_t most) {
  const auto size = static_cast<int64_t>(body.size());
  if (size <= most) return absl::OkStatus();
  const LongestString longest = FindLongestString(body, "state");
  if (longest.is_member && size - std::ssize(longest.value) <= most) return absl::OkStatus();
  return WithHttpStatus(
      absl::OutOfRangeError(fmt::format("the body has more than {} bytes beside its state", most)),
      413);
}

template <typename Routes>
std::function<HttpReply(const HttpRequest& request)> Bind(
    Routes* routes, HttpReply (Routes::*handle)(const HttpRequest& request)) {
  return [=](const HttpRequest& request) { return (routes->*handle)(request); };
}

}  // namespace

HttpRoutes::HttpRoutes(Handlers& handlers, Metrics& metrics, const AccessControl& access,
                       const HttpOptions& options, const BatchStoreOptions& batches)
    : handlers_(handlers),
      metrics_(metrics),
      access_(access),
      max_body_bytes_(options.max_body_bytes),
      encoding_(handlers, options),
      tgi_(handlers),
      tei_(handlers),
      kserve_(handlers),
      states_(handlers.states()),
      batches_(batches),
      router_({
          {kCompletionsPath, "POST", Bind(this, &HttpRoutes::Completions), ErrorShape::kOpenAi,
           Access::kKey, MostCompletionBytes(options, handlers.states().options())},
          {"/v1/chat/completions", "POST", Bind(this, &HttpRoutes::NoChats)},
          {"/v1/embeddings", "POST", Bind(&encoding_, &EncodingRoutes::Embeddings)},
          {"/v1/models", "GET", Bind(this, &HttpRoutes::ListModels)},
          {"/v1/models/{id}", "GET", Bind(this, &HttpRoutes::GetModel)},
          {"/generate", "POST", Bind(&tgi_, &TgiRoutes::Generate), ErrorShape::kTgi},
          {"/generate_stream", "POST", Bind(&tgi_, &TgiRoutes::GenerateStream), ErrorShape::kTgi},
          {"/", "POST", Bind(&tgi_, &TgiRoutes::Root), ErrorShape::kTgi},
          {"/", "GET", [this](const HttpRequest& request) { return page_.Answer(request); },
           ErrorShape::kOpenAi, Access::kOpen},
          {"/predict", "POST", Bind(&encoding_, &EncodingRoutes::Predict)},
          {"/embed", "POST", Bind(&encoding_, &EncodingRoutes::Embed)},
          {"/embed_all", "POST", Bind(&encoding_, &EncodingRoutes::EmbedAll)},
          {"/rerank", "POST", Bind(&tei_, &TeiRoutes::Rerank)},
          {"/similarity", "POST", Bind(&tei_, &TeiRoutes::Similarity)},
          {"/decode", "POST", Bind(&tei_, &TeiRoutes::Decode)},
          {"/fill_mask", "POST", Bind(&encoding_, &EncodingRoutes::FillMask)},
          {"/token_classification", "POST", Bind(&encoding_, &EncodingRoutes::TokenClassification)},
          {"/question_answering", "POST", Bind(&encoding_, &EncodingRoutes::QuestionAnswering)},
          {"/tokenize", "POST", Bind(this, &HttpRoutes::Tokenize)},
          {"/detokenize", "POST", Bind(this, &HttpRoutes::Detokenize)},
          {"/tokenizer_info", "GET", Bind(this, &HttpRoutes::ShowTokenizer)},
          {"/v2", "GET", Bind(&kserve_, &KServeRoutes::ServerMetadata), ErrorShape::kKServe},
          {"/v2/health/live", "GET", Bind(&kserve_, &KServeRoutes::ServerLive),
           ErrorShape::kKServe},
          {"/v2/health/ready", "GET", Bind(&kserve_, &KServeRoutes::ServerReady),
           ErrorShape::kKServe},
          {"/v2/models/{model}", "GET", Bind(&kserve_, &KServeRoutes::ModelMetadata),
           ErrorShape::kKServe},
          {"/v2/models/{model}/ready", "GET", Bind(&kserve_, &KServeRoutes::ModelReady),
           ErrorShape::kKServe},
          {"/v2/models/{model}/infer", "POST", Bind(&kserve_, &KServeRoutes::Infer),
           ErrorShape::kKServe},
          {"/v2/models/{model}/generate", "POST", Bind(&kserve_, &KServeRoutes::Generate),
           ErrorShape::kKServe},
          {"/v2/models/{model}/generate_stream", "POST",
           Bind(&kserve_, &KServeRoutes::GenerateStream), ErrorShape::kKServe},
          {"/v2/models/{model}/versions/{version}", "GET",
           Bind(&kserve_, &KServeRoutes::ModelMetadata), ErrorShape::kKServe},
          {"/v2/models/{model}/versions/{version}/ready", "GET",
           Bind(&kserve_, &KServeRoutes::ModelReady), ErrorShape::kKServe},
          {"/v2/models/{model}/versions/{version}/infer", "POST",
           Bind(&kserve_, &KServeRoutes::Infer), ErrorShape::kKServe},
          {"/v2/models/{model}/versions/{version}/generate", "POST",
           Bind(&kserve_, &KServeRoutes::Generate), ErrorShape::kKServe},
          {"/v2/models/{model}/versions/{version}/generate_stream", "POST",
           Bind(&kserve_, &KServeRoutes::GenerateStream), ErrorShape::kKServe},
          {"/v1/states", "GET", Bind(&states_, &StateRoutes::List)},
          {"/v1/states/{handle}", "GET", Bind(&states_, &StateRoutes::Get)},
          {"/v1/states/{handle}", "PUT", Bind(&states_, &StateRoutes::Put), ErrorShape::kOpenAi,
           Access::kKey, handlers.states().options().max_state_bytes},
          {"/v1/states/{handle}", "DELETE", Bind(&states_, &StateRoutes::Delete)},
          {"/v1/states/{handle}/fork", "POST", Bind(&states_, &StateRoutes::Fork)},
          {"/v1/files", "POST", Bind(&batches_, &BatchRoutes::Upload), ErrorShape::kOpenAi,
           Access::kKey, BatchRoutes::MostUploadBytes(batches, options)},
          {"/v1/files", "GET", Bind(&batches_, &BatchRoutes::ListFiles)},
          {"/v1/files/{id}", "GET", Bind(&batches_, &BatchRoutes::GetFile)},
          {"/v1/files/{id}", "DELETE", Bind(&batches_, &BatchRoutes::DeleteFile)},
          {"/v1/files/{id}/content", "GET", Bind(&batches_, &BatchRoutes::FileContent)},
          {"/v1/batches", "POST", Bind(&batches_, &BatchRoutes::Create)},
          {"/v1/batches", "GET", Bind(&batches_, &BatchRoutes::List)},
          {"/v1/batches/{id}", "GET", Bind(&batches_, &BatchRoutes::Get)},
          {"/v1/batches/{id}/cancel", "POST", Bind(&batches_, &BatchRoutes::Cancel)},
          {"/openapi.json", "GET", Bind(this, &HttpRoutes::DescribeRoutes)},
          {"/health", "GET", Bind(this, &HttpRoutes::Health), ErrorShape::kOpenAi, Access::kOpen},
          {"/ready", "GET", Bind(this, &HttpRoutes::Ready), ErrorShape::kOpenAi, Access::kOpen},
          {"/metrics", "GET", Bind(this, &HttpRoutes::Scrape)},
          {"/version", "GET", Bind(this, &HttpRoutes::ShowVersion)},
          {"/info", "GET", Bind(&encoding_, &EncodingRoutes::Info)},
      }),
      cors_(options.cors_origins) {}

void HttpRoutes::Route(HttpRequest& head) const {
  if (!head.routed) router_.Open(head, access_, Access::kKey);
}

HttpReply HttpRoutes::Handle(HttpRequest request) {
  Route(request);
  return HandleRouted(std::move(request));
}

HttpReply HttpRoutes::PassOn(HttpRequest request) {
  request.answer = router_.Resolve(request);
  return HandleRouted(std::move(request));
}

HttpReply HttpRoutes::HandleRouted(HttpRequest routed) {
  const auto request = std::make_shared<HttpRequest>(std::move(routed));
  HttpReply reply;
  if (request->answer) {
    reply.response = *std::move(request->answer);
  } else {
    reply = Answer(*request, [&] { return request->route->handle(*request); });
  }
  if (!reply.later) return Complete(*request, std::move(reply));
  reply.later = [this, request, make = std::move(reply.later)] {
    return Complete(*request, Answer(*request, make));
  };
  return reply;
}

HttpReply HttpRoutes::Answer(const HttpRequest& request, const std::function<HttpReply()>& make) {
  absl::StatusOr<HttpReply> reply = Guarded([&]() -> absl::StatusOr<HttpReply> { return make(); });
  return reply.ok() ? *std::move(reply) : Failed(reply.status(), request.route->errors);
}

HttpReply HttpRoutes::Complete(HttpRequest& request, HttpReply reply) const {
  HandOver(request, reply);
  return cors_.Allow(request, std::move(reply));
}

HttpReply HttpRoutes::Completions(const HttpRequest& request) {
  const absl::Status small = CheckBesideState(request.body, max_body_bytes_);
  if (!small.ok()) return Failed(small);
  absl::StatusOr<CompletionCall> call = ParseCompletion(request.body, handlers_.limits());
  if (!call.ok()) return Failed(call.status());
  if (call->requests.front().state().empty()) {
    return Complete(*std::move(call), request);
  }
  HttpReply reply;  // to read the state takes a while
  const auto shared = std::make_shared<CompletionCall>(*std::move(call));
  reply.later = [this, shared, &request] { return Complete(std::move(*shared), request); };
  return reply;
}

HttpReply HttpRoutes::Complete(CompletionCall call, const HttpRequest& request) {
  Caller caller = request.caller();
  caller.may_migrate = !request.background;
  absl::StatusOr<CompletionGroup> made = handlers_.Complete(call.requests, call.candidates, caller);
  if (!made.ok()) return Failed(made.status());
  std::string().swap(*call.requests.front().mutable_state());  // it may be large, and was read
  HttpReply reply;
  reply.streamed = call.stream;
  if (call.stream) {
    reply.response.content_type = "text/event-stream";
    reply.response.headers.emplace_back("Cache-Control", "no-cache");
    reply.filler = ": waiting\n\n";
  }
  reply.model = made->model->info().name();
  reply.work = NewCompletionWork(std::move(call), *std::move(made), request.stamp);
  return reply;
}

HttpReply HttpRoutes::NoChats(const HttpRequest&) {
  HttpReply reply;
  reply.response = ErrorResponse(404, "unknown_route",
                                 "these models continue texts and know no chats: use POST " +
                                     std::string(kCompletionsPath) + " with a \"prompt\"");
  return reply;
}

HttpReply HttpRoutes::Tokenize(const HttpRequest& request) {
  if (AsksTei(request.body)) return tei_.Tokenize(request);
  absl::StatusOr<v1::TokenizeRequest> parsed = ParseTokenize(request.body);
  if (!parsed.ok()) return Failed(parsed.status());
  absl::StatusOr<v1::TokenizeResponse> response = handlers_.Tokenize(*parsed);
  if (!response.ok()) return Failed(response.status());
  // It may have been unloaded this moment.
  const absl::StatusOr<v1::Model> model = handlers_.GetModel(parsed->model());
  if (!model.ok()) return Failed(model.status());
  return Ok(TokenizeBody(*response, *model));
}

HttpReply HttpRoutes::Detokenize(const HttpRequest& request) {
  absl::StatusOr<v1::DetokenizeRequest> parsed = ParseDetokenize(request.body);
  if (!parsed.ok()) return Failed(parsed.status());
  absl::StatusOr<v1::DetokenizeResponse> response = handlers_.Detokenize(*parsed);
  if (!response.ok()) return Failed(response.status());
  return Ok(DetokenizeBody(*response));
}

HttpReply HttpRoutes::ShowTokenizer(const HttpRequest&) {
  absl::StatusOr<TokenizerInfo> info = handlers_.DescribeTokenizer("");
  if (!info.ok()) return Failed(info.status());
  return Ok(TokenizerInfoBody(*info));
}

HttpReply HttpRoutes::ListModels(const HttpRequest&) {
  return Ok(ModelsBody(handlers_.ListModels()));
}

HttpReply HttpRoutes::GetModel(const HttpRequest& request) {
  const absl::StatusOr<v1::Model> model = handlers_.GetModel(request.parameters.at("id"));
  if (!model.ok()) return Failed(model.status());
  return Ok(ModelBody(*model));
}

HttpReply HttpRoutes::Health(const HttpRequest&) { return Ok(TextBody("status", "ok")); }

HttpReply HttpRoutes::Ready(const HttpRequest&) {
  const absl::Status status = handlers_.Ready();
  if (status.ok()) return Ok(TextBody("status", "ready"));
  HttpReply reply = Failed(status);
  reply.probe = true;
  return reply;
}

HttpReply HttpRoutes::Scrape(const HttpRequest&) {
  HttpReply reply = Ok(metrics_.Text());
  reply.response.content_type = "text/plain; version=0.0.4; charset=utf-8";
  return reply;
}

HttpReply HttpRoutes::DescribeRoutes(const HttpRequest&) {
  return Ok(OpenApiBody(router_.routes()));
}

HttpReply HttpRoutes::ShowVersion(const HttpRequest&) { return Ok(TextBody("version", Version())); }

}  // namespace hippodrome
