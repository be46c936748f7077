#include "server/handlers/handlers.h"

#include <fmt/format.h>

#include <random>
#include <utility>

#include "engine/base/field_error.h"
#include "engine/base/status.h"
#include "engine/sampling.h"

namespace hippodrome {
namespace {

constexpr int64_t kDefaultMaxTokens = 16;

uint64_t RandomSeed() {
  thread_local std::mt19937_64 random{std::random_device{}()};
  return random();
}

absl::Status CheckStops(const v1::GenerateRequest& request, const RequestLimits& limits) {
  if (request.stop_size() > limits.max_stops) {
    return FieldError("stop", fmt::format("{} stop strings, expected at most {}",
                                          request.stop_size(), limits.max_stops));
  }
  for (const std::string& stop : request.stop()) {
    if (stop.empty() || static_cast<int64_t>(stop.size()) > limits.max_stop_bytes) {
      return FieldError("stop", fmt::format("a stop string of {} bytes, expected 1 to {}",
                                            stop.size(), limits.max_stop_bytes));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckPrompt(const v1::GenerateRequest& request) {
  switch (request.prompt_case()) {
    case v1::GenerateRequest::kText:
      if (request.text().empty()) return FieldError("prompt", "the text is empty");
      return absl::OkStatus();
    case v1::GenerateRequest::kTokenIds:
      if (request.token_ids().ids().empty()) return FieldError("prompt", "there are no token ids");
      return absl::OkStatus();
    default:
      return FieldError("prompt", "expected a text or token ids");
  }
}

absl::Status CheckMaxTokens(const v1::GenerateRequest& request, const RequestLimits& limits) {
  const int64_t tokens = request.max_tokens();
  if (!request.has_max_tokens() || (tokens >= 1 && tokens <= limits.max_tokens)) {
    return absl::OkStatus();
  }
  return FieldError("max_tokens", fmt::format("{} is not in [1, {}]", tokens, limits.max_tokens));
}

absl::StatusOr<SamplingParameters> ReadSampling(const v1::GenerateRequest& request) {
  SamplingFields fields;
  if (request.has_temperature()) fields.temperature = request.temperature();
  if (request.has_top_k()) fields.top_k = request.top_k();
  if (request.has_top_p()) fields.top_p = request.top_p();
  if (request.has_min_p()) fields.min_p = request.min_p();
  fields.seed = request.has_seed() ? request.seed() : RandomSeed();
  return ToSamplingParameters(fields);
}

// All that is asked for, against its range in generation.proto and `limits`, but for what
// GenerationBatcher::Submit() checks. What is cheap to refuse comes before the prompt.
absl::StatusOr<GenerationCall> ToCall(const v1::GenerateRequest& request,
                                      const ServedDecoder& model, const RequestLimits& limits,
                                      const Caller& caller) {
  GenerationCall call;
  HIPPODROME_RETURN_IF_ERROR(CheckPrompt(request));
  HIPPODROME_RETURN_IF_ERROR(CheckMaxTokens(request, limits));
  HIPPODROME_ASSIGN_OR_RETURN(call.request.sampling, ReadSampling(request));
  HIPPODROME_RETURN_IF_ERROR(CheckStops(request, limits));
  call.caller = caller;
  if (request.has_text()) {
    HIPPODROME_ASSIGN_OR_RETURN(const BpeTokenizer* tokenizer, model.Tokenizer());
    call.request.prompt = tokenizer->Encode(request.text());
  } else {
    const auto& ids = request.token_ids().ids();
    call.request.prompt.assign(ids.begin(), ids.end());
  }
  if (request.stop_size() > 0) HIPPODROME_RETURN_IF_ERROR(model.Tokenizer().status());
  call.request.max_tokens = request.has_max_tokens() ? request.max_tokens() : kDefaultMaxTokens;
  call.request.ignore_eos = request.ignore_eos();
  call.stop.assign(request.stop().begin(), request.stop().end());
  return call;
}

}  // namespace

Handlers::Handlers(std::vector<std::unique_ptr<ServedModel>> models, const RequestLimits& limits)
    : models_(std::move(models)), limits_(limits), encoding_(models_, limits_) {}

absl::StatusOr<std::unique_ptr<Generation>> Handlers::Generate(const v1::GenerateRequest& request,
                                                               const Caller& caller) {
  HIPPODROME_ASSIGN_OR_RETURN(ServedDecoder * model, models_.FindDecoder(request.model()));
  if (closed_.load()) return Unavailable("the server is stopping");
  HIPPODROME_ASSIGN_OR_RETURN(GenerationCall call, ToCall(request, *model, limits_, caller));
  return model->batcher().Submit(std::move(call));
}

absl::StatusOr<v1::TokenizeResponse> Handlers::Tokenize(const v1::TokenizeRequest& request) const {
  HIPPODROME_ASSIGN_OR_RETURN(const ServedModel* model, models_.Find(request.model()));
  HIPPODROME_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, model->Tokenize(request.text()));
  v1::TokenizeResponse response;
  response.mutable_token_ids()->Add(ids.begin(), ids.end());
  return response;
}

absl::StatusOr<v1::DetokenizeResponse> Handlers::Detokenize(
    const v1::DetokenizeRequest& request) const {
  HIPPODROME_ASSIGN_OR_RETURN(const ServedModel* model, models_.Find(request.model()));
  const std::span<const int32_t> ids(request.token_ids().data(), request.token_ids().size());
  HIPPODROME_ASSIGN_OR_RETURN(std::string text, model->Detokenize(ids));
  v1::DetokenizeResponse response;
  response.set_text(std::move(text));
  return response;
}

absl::StatusOr<std::vector<PlacedToken>> Handlers::PlaceTokens(const std::string& model,
                                                               const std::string& text,
                                                               bool add_special) const {
  HIPPODROME_ASSIGN_OR_RETURN(ServedModel * found, models_.Find(model));
  return hippodrome::PlaceTokens(*found, text, add_special);
}

absl::StatusOr<std::string> Handlers::Decode(const std::string& model, std::span<const int32_t> ids,
                                             bool skip_special) const {
  HIPPODROME_ASSIGN_OR_RETURN(ServedModel * found, models_.Find(model));
  std::vector<int32_t> kept;
  for (const int32_t id : ids) {
    if (!skip_special || !IsSpecialToken(*found, id)) kept.push_back(id);
  }
  return found->Detokenize(kept);
}

v1::ListModelsResponse Handlers::ListModels() const {
  v1::ListModelsResponse response;
  for (const auto& model : models_.all()) *response.add_models() = model->info();
  return response;
}

absl::StatusOr<v1::Model> Handlers::GetModel(const std::string& name) const {
  HIPPODROME_ASSIGN_OR_RETURN(const ServedModel* model, models_.Find(name));
  return model->info();
}

std::string Handlers::ModelName(const std::string& name) const {
  const absl::StatusOr<ServedDecoder*> model = models_.FindDecoder(name);
  return model.ok() ? (*model)->info().name() : "";
}

absl::StatusOr<const BpeTokenizer*> Handlers::DecoderTokenizer(const std::string& model) const {
  HIPPODROME_ASSIGN_OR_RETURN(const ServedDecoder* decoder, models_.FindDecoder(model));
  return decoder->Tokenizer();
}

absl::Status Handlers::Ready() const {
  if (closed_.load()) return Unavailable("the server is stopping");
  const auto now = ServedModel::Clock::now();
  for (const auto& model : models_.all()) {
    if (now - model->heartbeat() <= model->longest_turn()) continue;
    return Unavailable("the engine of model '" + model->info().name() + "' does not respond");
  }
  return absl::OkStatus();
}

void Handlers::Close() {
  closed_.store(true);
  for (const auto& model : models_.all()) model->Close();
}

void Handlers::Abort() {
  for (const auto& model : models_.all()) {
    model->Abort(Unavailable("the server has stopped before the answer was complete"));
  }
}

int64_t Handlers::pending() const {
  int64_t sum = 0;
  for (const auto& model : models_.all()) sum += model->pending();
  return sum;
}

}  // namespace hippodrome
