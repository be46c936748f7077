#include "server/http/http_routes.h"

#include <fmt/format.h>

#include <chrono>
#include <random>
#include <utility>

#include "engine/base/status.h"
#include "server/guarded.h"
#include "server/http/completion_work.h"
#include "server/http/http_replies.h"
#include "server/json/json_requests.h"
#include "server/json/json_responses.h"
#include "server/version.h"

namespace hippodrome {
namespace {

CompletionHead NewHead(std::string model) {
  thread_local std::mt19937_64 random{std::random_device{}()};
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return {.id = fmt::format("cmpl-{:016x}{:016x}", random(), random()),
          .model = std::move(model),
          .created = std::chrono::duration_cast<std::chrono::seconds>(now).count()};
}

template <typename Routes>
std::function<HttpReply(const HttpRequest& request)> Bind(
    Routes* routes, HttpReply (Routes::*handle)(const HttpRequest& request)) {
  return [=](const HttpRequest& request) { return (routes->*handle)(request); };
}

}  // namespace

HttpRoutes::HttpRoutes(Handlers& handlers, Metrics& metrics, const HttpOptions& options)
    : handlers_(handlers),
      metrics_(metrics),
      encoding_(handlers, metrics, options),
      routes_({
          {"/v1/completions", "POST", Bind(this, &HttpRoutes::Completions)},
          {"/v1/embeddings", "POST", Bind(&encoding_, &EncodingRoutes::Embeddings)},
          {"/v1/models", "GET", Bind(this, &HttpRoutes::ListModels)},
          {"/predict", "POST", Bind(&encoding_, &EncodingRoutes::Predict)},
          {"/embed", "POST", Bind(&encoding_, &EncodingRoutes::Embed)},
          {"/fill_mask", "POST", Bind(&encoding_, &EncodingRoutes::FillMask)},
          {"/token_classification", "POST", Bind(&encoding_, &EncodingRoutes::TokenClassification)},
          {"/question_answering", "POST", Bind(&encoding_, &EncodingRoutes::QuestionAnswering)},
          {"/tokenize", "POST", Bind(this, &HttpRoutes::Tokenize)},
          {"/detokenize", "POST", Bind(this, &HttpRoutes::Detokenize)},
          {"/health", "GET", Bind(this, &HttpRoutes::Health)},
          {"/ready", "GET", Bind(this, &HttpRoutes::Ready)},
          {"/metrics", "GET", Bind(this, &HttpRoutes::Scrape)},
          {"/version", "GET", Bind(this, &HttpRoutes::ShowVersion)},
          {"/info", "GET", Bind(&encoding_, &EncodingRoutes::Info)},
      }) {}

const HttpRoute* HttpRoutes::FindRoute(const std::string& path) const {
  for (const HttpRoute& route : routes_) {
    if (path == route.path) return &route;
  }
  return nullptr;
}

HttpReply HttpRoutes::Handle(const HttpRequest& request) {
  const HttpRoute* route = FindRoute(request.path);
  HttpReply reply;
  if (route == nullptr) {
    reply = Refused(404, "unknown_route", "there is no " + request.path);
  } else if (request.method != route->method) {
    reply = Refused(405, "wrong_method",
                    request.path + " takes " + route->method + ", not " + request.method);
    reply.response.headers.emplace_back("Allow", route->method);
  } else {
    reply = Answer(*route, request);
  }
  if (reply.work == nullptr) {
    metrics_.CountRequest(Api::kHttp, route == nullptr ? "other" : route->path, "",
                          std::to_string(reply.response.status));
  }
  return reply;
}

HttpReply HttpRoutes::Answer(const HttpRoute& route, const HttpRequest& request) {
  absl::StatusOr<HttpReply> reply =
      Guarded([&]() -> absl::StatusOr<HttpReply> { return route.handle(request); });
  return reply.ok() ? *std::move(reply) : Failed(reply.status(), metrics_);
}

HttpReply HttpRoutes::Completions(const HttpRequest& request) {
  absl::StatusOr<CompletionCall> call = ParseCompletion(request.body, handlers_.limits());
  if (!call.ok()) return Failed(call.status(), metrics_);
  std::vector<std::unique_ptr<Generation>> generations;
  for (const v1::GenerateRequest& prompt : call->requests) {
    absl::StatusOr<std::unique_ptr<Generation>> generation = handlers_.Generate(prompt, Api::kHttp);
    if (!generation.ok()) return Failed(generation.status(), metrics_);
    generations.push_back(*std::move(generation));
  }
  HttpReply reply;
  reply.streamed = call->stream;
  if (call->stream) {
    reply.response.content_type = "text/event-stream";
    reply.response.headers.emplace_back("Cache-Control", "no-cache");
  }
  const CompletionWork::Format format{call->stream, call->include_usage};
  CompletionHead head = NewHead(handlers_.ModelName(call->requests.front().model()));
  reply.work =
      std::make_unique<CompletionWork>(std::move(generations), std::move(head), format, metrics_);
  return reply;
}

HttpReply HttpRoutes::Tokenize(const HttpRequest& request) {
  absl::StatusOr<v1::TokenizeRequest> parsed = ParseTokenize(request.body);
  if (!parsed.ok()) return Failed(parsed.status(), metrics_);
  absl::StatusOr<v1::TokenizeResponse> response = handlers_.Tokenize(*parsed);
  if (!response.ok()) return Failed(response.status(), metrics_);
  return Ok(TokenizeBody(*response, handlers_.GetModel(parsed->model()).value()));
}

HttpReply HttpRoutes::Detokenize(const HttpRequest& request) {
  absl::StatusOr<v1::DetokenizeRequest> parsed = ParseDetokenize(request.body);
  if (!parsed.ok()) return Failed(parsed.status(), metrics_);
  absl::StatusOr<v1::DetokenizeResponse> response = handlers_.Detokenize(*parsed);
  if (!response.ok()) return Failed(response.status(), metrics_);
  return Ok(DetokenizeBody(*response));
}

HttpReply HttpRoutes::ListModels(const HttpRequest&) {
  return Ok(ModelsBody(handlers_.ListModels()));
}

HttpReply HttpRoutes::Health(const HttpRequest&) { return Ok(TextBody("status", "ok")); }

HttpReply HttpRoutes::Ready(const HttpRequest&) {
  const absl::Status status = handlers_.Ready();
  if (status.ok()) return Ok(TextBody("status", "ready"));
  HttpReply reply;
  reply.response = ErrorResponse(status);
  return reply;
}

HttpReply HttpRoutes::Scrape(const HttpRequest&) {
  HttpReply reply = Ok(metrics_.Text());
  reply.response.content_type = "text/plain; version=0.0.4; charset=utf-8";
  return reply;
}

HttpReply HttpRoutes::ShowVersion(const HttpRequest&) { return Ok(TextBody("version", Version())); }

}  // namespace hippodrome
