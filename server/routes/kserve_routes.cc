#include "server/routes/kserve_routes.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "engine/base/field_error.h"
#include "engine/base/status.h"
#include "server/http/http_replies.h"
#include "server/json/json_responses.h"
#include "server/json/kserve_json.h"
#include "server/routes/answer_work.h"
#include "server/routes/generation_work.h"

namespace hippodrome {
namespace {

constexpr char kJsonLength[] = "inference-header-content-length";

// "" where the path has no such segment.
std::string Segment(const HttpRequest& request, const char* name) {
  const auto it = request.parameters.find(name);
  return it == request.parameters.end() ? "" : it->second;
}

absl::StatusOr<std::optional<size_t>> JsonBytes(const HttpRequest& request) {
  const auto it = request.headers.find(kJsonLength);
  if (it == request.headers.end()) return std::nullopt;
  uint64_t bytes = 0;
  if (!absl::SimpleAtoi(it->second, &bytes)) {
    return InvalidArgument("Inference-Header-Content-Length is no number of bytes");
  }
  return static_cast<size_t>(bytes);
}

absl::StatusOr<InferCall> ReadInfer(const HttpRequest& request) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::optional<size_t> json_bytes, JsonBytes(request));
  HIPPODROME_ASSIGN_OR_RETURN(InferCall call, ParseInfer(request.body, json_bytes));
  call.request.set_model_name(Segment(request, "model"));
  call.request.set_model_version(Segment(request, "version"));
  return call;
}

// "stream" may say what the path says already.
absl::Status TakeStream(bool streamed, inference::ModelInferRequest& request) {
  const auto it = request.mutable_parameters()->find("stream");
  if (it == request.mutable_parameters()->end()) return absl::OkStatus();
  if (!it->second.has_bool_param() || it->second.bool_param() != streamed) {
    return FieldError("stream", "use .../generate_stream for streams, and .../generate for others");
  }
  request.mutable_parameters()->erase(it);
  return absl::OkStatus();
}

absl::StatusOr<inference::ModelInferRequest> ReadGenerate(const HttpRequest& request,
                                                          bool streamed) {
  HIPPODROME_ASSIGN_OR_RETURN(inference::ModelInferRequest call, ParseKServeGenerate(request.body));
  HIPPODROME_RETURN_IF_ERROR(TakeStream(streamed, call));
  call.set_model_name(Segment(request, "model"));
  call.set_model_version(Segment(request, "version"));
  return call;
}

// A body with the whole text, or an event for each new part.
class KServeTextFormat : public GenerationFormat {
 public:
  KServeTextFormat(inference::ModelInferRequest request, bool streamed)
      : request_(std::move(request)), streamed_(streamed) {}

  void Add(size_t, const StreamUpdate& update, HttpResponse& response) override {
    text_ += update.text;
    if (!streamed_ || (text_.empty() && !update.last())) return;
    response.body += ServerSentEvent(TakeBody());
  }

  void Complete(HttpResponse& response) override { response.body = TakeBody(); }

 private:
  std::string TakeBody() {
    return KServeTextBody(request_, kModelVersion, std::exchange(text_, ""));
  }

  const inference::ModelInferRequest request_;
  const bool streamed_;
  std::string text_;  // that was not written yet
};

}  // namespace

HttpReply KServeRoutes::ServerMetadata(const HttpRequest&) {
  return Ok(ServerMetadataBody(inference_.ServerMetadata()));
}

HttpReply KServeRoutes::ServerLive(const HttpRequest&) { return Ok(FlagBody("", "live", true)); }

HttpReply KServeRoutes::ServerReady(const HttpRequest& request) {
  const absl::Status status = handlers_.Ready();
  if (status.ok()) return Ok(FlagBody("", "ready", true));
  HttpReply reply = Failed(status, request.route->errors);
  reply.probe = true;
  return reply;
}

HttpReply KServeRoutes::ModelMetadata(const HttpRequest& request) {
  const auto metadata =
      inference_.ModelMetadata(Segment(request, "model"), Segment(request, "version"));
  if (!metadata.ok()) return Failed(metadata.status(), request.route->errors);
  return Ok(ModelMetadataBody(*metadata));
}

HttpReply KServeRoutes::ModelReady(const HttpRequest& request) {
  const std::string model = Segment(request, "model");
  const absl::Status status = inference_.ModelReady(model, Segment(request, "version"));
  if (status.ok()) return Ok(FlagBody(model, "ready", true));
  HttpReply reply = Failed(status, request.route->errors);
  reply.probe = true;
  return reply;
}

HttpReply KServeRoutes::Infer(const HttpRequest& request) {
  absl::StatusOr<InferCall> call = ReadInfer(request);
  if (!call.ok()) return Failed(call.status(), request.route->errors);
  auto answer = inference_.Infer(call->request, request.caller());
  call->request.clear_inputs();
  return AnswerReply(request, std::move(answer),
                     [call = *std::move(call)](const inference::ModelInferResponse& result,
                                               HttpResponse& response) {
                       InferBody body = InferResponseBody(call, result);
                       response.body = std::move(body.body);
                       if (!body.json_bytes) return;
                       response.content_type = "application/octet-stream";
                       response.headers.emplace_back("Inference-Header-Content-Length",
                                                     std::to_string(*body.json_bytes));
                     });
}

HttpReply KServeRoutes::AnswerText(const HttpRequest& request, bool streamed) {
  absl::StatusOr<inference::ModelInferRequest> call = ReadGenerate(request, streamed);
  if (!call.ok()) return Failed(call.status(), request.route->errors);
  const auto generate = inference_.ToGenerate(*call);
  if (!generate.ok()) return Failed(generate.status(), request.route->errors);
  auto made = handlers_.Complete({&*generate, 1}, 1, request.caller());
  if (!made.ok()) return Failed(made.status(), request.route->errors);
  call->clear_inputs();
  return GenerationReply(request, std::move(made->generations),
                         std::make_unique<KServeTextFormat>(*std::move(call), streamed), streamed,
                         generate->model());
}

HttpReply KServeRoutes::Generate(const HttpRequest& request) { return AnswerText(request, false); }

HttpReply KServeRoutes::GenerateStream(const HttpRequest& request) {
  return AnswerText(request, true);
}

}  // namespace hippodrome
