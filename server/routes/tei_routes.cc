#include "server/routes/tei_routes.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "engine/base/field_error.h"
#include "engine/base/status.h"
#include "server/http/http_replies.h"
#include "server/json/tei_json.h"
#include "server/routes/answer_work.h"

namespace hippodrome {
namespace {

// Of all inputs of a call of /tokenize: an answer takes some seventy bytes for each token.
constexpr size_t kMostTokenizedBytes = size_t{1} << 20;

bool IsReranker(const v1::Model& model) {
  return model.head() == "sequence_classification" && model.labels_size() == 1;
}

// "NAME (HEAD, LABELS labels)" of each encoder.
std::string DescribeEncoders(const v1::ListModelsResponse& models) {
  std::string text;
  for (const v1::Model& model : models.models()) {
    if (model.head().empty()) continue;
    text += fmt::format("{}{} ({}, {} labels)", text.empty() ? "" : ", ", model.name(),
                        model.head(), model.labels_size());
  }
  return text.empty() ? "none" : text;
}

absl::Status CheckCalls(const char* field, size_t count, const RequestLimits& limits) {
  if (count >= 1 && static_cast<int64_t>(count) <= limits.max_inputs) return absl::OkStatus();
  return FieldError(field, fmt::format("there are {}, expected 1 to {}", count, limits.max_inputs));
}

absl::Status CheckBytes(const std::vector<std::string>& inputs) {
  size_t bytes = 0;
  for (const std::string& input : inputs) bytes += input.size();
  if (bytes <= kMostTokenizedBytes) return absl::OkStatus();
  return FieldError("inputs",
                    fmt::format("{} bytes, expected at most {}", bytes, kMostTokenizedBytes));
}

HttpReply ReplyWith(const HttpRequest& request, absl::StatusOr<std::string> body) {
  return body.ok() ? Ok(*std::move(body)) : Failed(body.status(), request.route->errors);
}

}  // namespace

absl::StatusOr<std::string> TeiRoutes::FindReranker(const std::string& name) const {
  if (!name.empty()) {
    HIPPODROME_ASSIGN_OR_RETURN(const v1::Model model, handlers_.encoding().GetModel(name));
    if (IsReranker(model)) return name;
    return FailedPrecondition(fmt::format(
        "model '{}' is no reranker, a sequence classifier with one label: its head is {}, with {} "
        "labels",
        name, model.head(), model.labels_size()));
  }
  const v1::ListModelsResponse models = handlers_.ListModels();
  for (const v1::Model& model : models.models()) {
    if (IsReranker(model)) return model.name();
  }
  return FailedPrecondition(
      "no model of this server is a reranker, a sequence classifier with one label; encoders: " +
      DescribeEncoders(models));
}

HttpReply TeiRoutes::Rerank(const HttpRequest& request) {
  absl::StatusOr<RerankCall> call = ParseRerank(request.body);
  if (!call.ok()) return Failed(call.status(), request.route->errors);
  absl::StatusOr<std::string> model = FindReranker(call->request.model());
  if (!model.ok()) return Failed(model.status(), request.route->errors);
  call->request.set_model(*std::move(model));
  auto answer = handlers_.encoding().Classify(call->request, request.caller());
  return AnswerReply(
      request, std::move(answer),
      [call = *std::move(call)](const v1::ClassifyResponse& result, HttpResponse& response) {
        response.body = RerankBody(call, result);
      });
}

HttpReply TeiRoutes::Similarity(const HttpRequest& request) {
  const absl::StatusOr<SimilarityCall> call = ParseSimilarity(request.body);
  if (!call.ok()) return Failed(call.status(), request.route->errors);
  return AnswerReply(request, handlers_.encoding().Embed(call->request, request.caller()),
                     [](const v1::EmbedResponse& result, HttpResponse& response) {
                       response.body = SimilarityBody(result);
                     });
}

absl::StatusOr<std::string> TeiRoutes::TokenizeAll(const HttpRequest& request) const {
  HIPPODROME_ASSIGN_OR_RETURN(const TeiTokenizeCall call, ParseTeiTokenize(request.body));
  HIPPODROME_RETURN_IF_ERROR(CheckCalls("inputs", call.inputs.size(), handlers_.limits()));
  HIPPODROME_RETURN_IF_ERROR(CheckBytes(call.inputs));
  std::vector<std::vector<PlacedToken>> tokens;
  for (const std::string& input : call.inputs) {
    HIPPODROME_ASSIGN_OR_RETURN(tokens.emplace_back(),
                                handlers_.PlaceTokens(call.model, input, call.add_special_tokens));
  }
  return TeiTokenizeBody(tokens);
}

absl::StatusOr<std::string> TeiRoutes::DecodeAll(const HttpRequest& request) const {
  HIPPODROME_ASSIGN_OR_RETURN(const TeiDecodeCall call, ParseTeiDecode(request.body));
  HIPPODROME_RETURN_IF_ERROR(CheckCalls("ids", call.ids.size(), handlers_.limits()));
  std::vector<std::string> texts;
  for (const std::vector<int32_t>& ids : call.ids) {
    HIPPODROME_ASSIGN_OR_RETURN(texts.emplace_back(),
                                handlers_.Decode(call.model, ids, call.skip_special_tokens));
  }
  return TeiDecodeBody(texts);
}

HttpReply TeiRoutes::Tokenize(const HttpRequest& request) {
  return ReplyWith(request, TokenizeAll(request));
}

HttpReply TeiRoutes::Decode(const HttpRequest& request) {
  return ReplyWith(request, DecodeAll(request));
}

}  // namespace hippodrome
