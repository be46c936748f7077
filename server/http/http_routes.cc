#include "server/http/http_routes.h"

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <random>
#include <utility>

#include "engine/base/status.h"
#include "server/batching/generation_batcher.h"
#include "server/guarded.h"
#include "server/http/http_replies.h"
#include "server/json/json_fields.h"
#include "server/json/json_requests.h"
#include "server/json/json_responses.h"
#include "server/status_map.h"
#include "server/version.h"

namespace hippodrome {
namespace {

// ---- The work behind a call of /v1/completions
// ---------------------------------------------------

// A response that is not streamed takes its tokens in lots of this size.
constexpr int64_t kTokenLot = 64;

constexpr char kCompletions[] = "/v1/completions";

std::string Event(const std::string& data) { return "data: " + data + "\n\n"; }

// One generation per prompt, answered as one JSON body or as server-sent events.
class CompletionWork : public HttpWork {
 public:
  struct Format {
    bool stream = false;
    bool include_usage = false;
  };

  // `metrics` must outlive the work.
  CompletionWork(std::vector<std::unique_ptr<Generation>> generations, CompletionHead head,
                 Format format, Metrics& metrics);
  ~CompletionWork() override;

  void OnUpdate(std::function<void()> wake) override;
  bool Advance(HttpResponse& response) override;

 private:
  // Whether the response is complete, or the error that it becomes.
  absl::StatusOr<bool> Progress(HttpResponse& response);
  // Adds the next update of choice `i` to `response`; false when there is none.
  bool Collect(size_t i, HttpResponse& response);
  void Fail(const absl::Status& status, HttpResponse& response);
  void Complete(HttpResponse& response);

  std::vector<std::unique_ptr<Generation>> generations_;  // null once finished
  std::vector<StreamUpdate> choices_;  // text and tokens are kept only where not streamed
  const CompletionHead head_;
  const Format format_;
  Metrics& metrics_;
  size_t unfinished_;
  absl::Status failure_;
  bool counted_ = false;
};

CompletionWork::CompletionWork(std::vector<std::unique_ptr<Generation>> generations,
                               CompletionHead head, Format format, Metrics& metrics)
    : generations_(std::move(generations)),
      choices_(generations_.size()),
      head_(std::move(head)),
      format_(format),
      metrics_(metrics),
      unfinished_(generations_.size()) {}

CompletionWork::~CompletionWork() {
  if (counted_) return;
  metrics_.CountFailure(absl::CancelledError());
  metrics_.CountRequest(Api::kHttp, kCompletions, head_.model, "499");
}

void CompletionWork::OnUpdate(std::function<void()> wake) {
  // Waking for each token that nobody sees yet takes up to a tenth of the time of small models.
  const int64_t tokens = format_.stream ? 1 : kTokenLot;
  for (const auto& generation : generations_) generation->OnUpdate(wake, tokens);
}

bool CompletionWork::Advance(HttpResponse& response) {
  const absl::StatusOr<bool> done = Guarded([&] { return Progress(response); });
  if (!done.ok()) Fail(done.status(), response);
  return done.value_or(true);
}

absl::StatusOr<bool> CompletionWork::Progress(HttpResponse& response) {
  for (size_t i = 0; i < generations_.size(); ++i) {
    while (generations_[i] != nullptr && Collect(i, response)) {
      HIPPODROME_RETURN_IF_ERROR(failure_);
    }
  }
  if (unfinished_ > 0) return false;
  Complete(response);
  return true;
}

bool CompletionWork::Collect(size_t i, HttpResponse& response) {
  std::optional<StreamUpdate> update = generations_[i]->Take();
  if (!update) return false;
  if (update->last()) {
    generations_[i].reset();
    --unfinished_;
  }
  failure_ = update->status;
  if (!failure_.ok()) return true;
  if (format_.stream) {
    response.body += Event(CompletionEvent(head_, static_cast<int64_t>(i), *update));
    update->text.clear();
    update->token_ids.clear();
  }
  StreamUpdate& choice = choices_[i];
  choice.text += update->text;
  choice.token_ids.insert(choice.token_ids.end(), update->token_ids.begin(),
                          update->token_ids.end());
  choice.finish = update->finish;
  choice.prompt_tokens = update->prompt_tokens;
  choice.completion_tokens = update->completion_tokens;
  return true;
}

// A stream that has begun can only end with an error event.
void CompletionWork::Fail(const absl::Status& status, HttpResponse& response) {
  generations_.clear();
  if (format_.stream) {
    response.body += Event(ErrorBody(status));
  } else {
    response = ErrorResponse(status);
  }
  counted_ = true;
  metrics_.CountFailure(status);
  metrics_.CountRequest(Api::kHttp, kCompletions, head_.model, std::to_string(HttpStatus(status)));
}

void CompletionWork::Complete(HttpResponse& response) {
  if (format_.stream) {
    if (format_.include_usage) response.body += Event(UsageEvent(head_, choices_));
    response.body += Event("[DONE]");
  } else {
    response.body = CompletionBody(head_, choices_);
  }
  counted_ = true;
  metrics_.CountRequest(Api::kHttp, kCompletions, head_.model, "200");
}

// ---- Routes
// --------------------------------------------------------------------------------------

CompletionHead NewHead(std::string model) {
  thread_local std::mt19937_64 random{std::random_device{}()};
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return {.id = fmt::format("cmpl-{:016x}{:016x}", random(), random()),
          .model = std::move(model),
          .created = std::chrono::duration_cast<std::chrono::seconds>(now).count()};
}

// Whether a body of /tokenize has TEI's `inputs` and not vLLM's `prompt`. What is broken is for the
// one parser to say.
bool AsksTei(const std::string& body) {
  const absl::StatusOr<Json> json = ParseObject(body);
  return json.ok() && json->contains("inputs") && !json->contains("prompt");
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
      tgi_(handlers, metrics),
      tei_(handlers, metrics),
      router_({
          {kCompletions, "POST", Bind(this, &HttpRoutes::Completions)},
          {"/v1/embeddings", "POST", Bind(&encoding_, &EncodingRoutes::Embeddings)},
          {"/v1/models", "GET", Bind(this, &HttpRoutes::ListModels)},
          {"/v1/models/{id}", "GET", Bind(this, &HttpRoutes::GetModel)},
          {"/generate", "POST", Bind(&tgi_, &TgiRoutes::Generate), ErrorShape::kTgi},
          {"/generate_stream", "POST", Bind(&tgi_, &TgiRoutes::GenerateStream), ErrorShape::kTgi},
          {"/", "POST", Bind(&tgi_, &TgiRoutes::Root), ErrorShape::kTgi},
          {"/predict", "POST", Bind(&encoding_, &EncodingRoutes::Predict)},
          {"/embed", "POST", Bind(&encoding_, &EncodingRoutes::Embed)},
          {"/rerank", "POST", Bind(&tei_, &TeiRoutes::Rerank)},
          {"/similarity", "POST", Bind(&tei_, &TeiRoutes::Similarity)},
          {"/decode", "POST", Bind(&tei_, &TeiRoutes::Decode)},
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
      }),
      cors_(options.cors_origins) {}

HttpReply HttpRoutes::Handle(HttpRequest request) {
  HttpReply reply;
  if (std::optional<HttpResponse> response = router_.Resolve(request)) {
    reply.response = *std::move(response);
  } else {
    reply = Answer(request);
  }
  if (reply.work == nullptr) {
    metrics_.CountRequest(Api::kHttp, request.route == nullptr ? "other" : request.route->pattern,
                          "", std::to_string(reply.response.status));
  }
  return cors_.Allow(request, std::move(reply));
}

HttpReply HttpRoutes::Answer(const HttpRequest& request) {
  absl::StatusOr<HttpReply> reply =
      Guarded([&]() -> absl::StatusOr<HttpReply> { return request.route->handle(request); });
  return reply.ok() ? *std::move(reply) : Failed(reply.status(), metrics_, request.route->errors);
}

HttpReply HttpRoutes::Completions(const HttpRequest& request) {
  absl::StatusOr<CompletionCall> call = ParseCompletion(request.body, handlers_.limits());
  if (!call.ok()) return Failed(call.status(), metrics_);
  const Caller caller(Api::kHttp, request.client);
  std::vector<std::unique_ptr<Generation>> generations;
  for (const v1::GenerateRequest& prompt : call->requests) {
    absl::StatusOr<std::unique_ptr<Generation>> generation = handlers_.Generate(prompt, caller);
    if (!generation.ok()) return Failed(generation.status(), metrics_);
    generations.push_back(*std::move(generation));
  }
  HttpReply reply;
  reply.streamed = call->stream;
  if (call->stream) {
    reply.response.content_type = "text/event-stream";
    reply.response.headers.emplace_back("Cache-Control", "no-cache");
    reply.filler = ": waiting\n\n";
  }
  const CompletionWork::Format format{call->stream, call->include_usage};
  CompletionHead head = NewHead(handlers_.ModelName(call->requests.front().model()));
  reply.work =
      std::make_unique<CompletionWork>(std::move(generations), std::move(head), format, metrics_);
  return reply;
}

HttpReply HttpRoutes::Tokenize(const HttpRequest& request) {
  if (AsksTei(request.body)) return tei_.Tokenize(request);
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

HttpReply HttpRoutes::GetModel(const HttpRequest& request) {
  const absl::StatusOr<v1::Model> model = handlers_.GetModel(request.parameters.at("id"));
  if (!model.ok()) return Failed(model.status(), metrics_);
  return Ok(ModelBody(*model));
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
