#include "server/handlers.h"

#include <random>
#include <utility>

#include "engine/status.h"
#include "server/status_map.h"
#include "server/validation.h"

namespace hippodrome {
namespace {

// A loop that has not come by for so long hangs.
constexpr std::chrono::seconds kHeartbeatLimit{5};

constexpr int64_t kDefaultMaxTokens = 16;

uint64_t RandomSeed() {
  thread_local std::mt19937_64 random{std::random_device{}()};
  return random();
}

SamplingParameters ToSampling(const v1::GenerateRequest& request) {
  SamplingParameters sampling;
  if (request.has_temperature()) sampling.temperature = request.temperature();
  if (request.has_top_k()) sampling.top_k = static_cast<int32_t>(request.top_k());
  if (request.has_top_p()) sampling.top_p = request.top_p();
  if (request.has_min_p()) sampling.min_p = request.min_p();
  sampling.seed = request.has_seed() ? request.seed() : RandomSeed();
  return sampling;
}

}  // namespace

Handlers::Handlers(std::vector<std::unique_ptr<ServedModel>> models, const RequestLimits& limits)
    : models_(std::move(models)), limits_(limits) {}

absl::StatusOr<ServedModel*> Handlers::Find(const std::string& name) const {
  if (name.empty()) return models_.front().get();
  for (const auto& model : models_) {
    if (model->info().name() == name) return model.get();
  }
  return NotFound("there is no model '" + name + "'");
}

absl::StatusOr<const BpeTokenizer*> Handlers::Tokenizer(const ServedModel& model) const {
  if (model.tokenizer() != nullptr) return model.tokenizer();
  return FailedPrecondition("model '" + model.info().name() + "' has no tokenizer: use token ids");
}

absl::StatusOr<GenerationCall> Handlers::ToCall(const v1::GenerateRequest& request,
                                                const ServedModel& model, Api api) const {
  GenerationCall call;
  call.api = api;
  if (request.has_text()) {
    HIPPODROME_ASSIGN_OR_RETURN(const BpeTokenizer* tokenizer, Tokenizer(model));
    call.request.prompt = tokenizer->Encode(request.text());
  } else {
    const auto& ids = request.token_ids().ids();
    call.request.prompt.assign(ids.begin(), ids.end());
    HIPPODROME_RETURN_IF_ERROR(
        ValidateTokenIds(call.request.prompt, model.info().vocab_size(), "prompt"));
  }
  if (request.stop_size() > 0) HIPPODROME_RETURN_IF_ERROR(Tokenizer(model).status());
  call.request.max_tokens = request.has_max_tokens() ? request.max_tokens() : kDefaultMaxTokens;
  call.request.sampling = ToSampling(request);
  call.request.ignore_eos = request.ignore_eos();
  call.stop.assign(request.stop().begin(), request.stop().end());
  return call;
}

absl::StatusOr<std::unique_ptr<Generation>> Handlers::Generate(const v1::GenerateRequest& request,
                                                               Api api) {
  HIPPODROME_ASSIGN_OR_RETURN(ServedModel * model, Find(request.model()));
  HIPPODROME_RETURN_IF_ERROR(ValidateRequest(request, limits_));
  if (closed_.load()) return Unavailable("the server is stopping");
  HIPPODROME_ASSIGN_OR_RETURN(GenerationCall call, ToCall(request, *model, api));
  return model->batcher().Submit(std::move(call));
}

absl::StatusOr<v1::TokenizeResponse> Handlers::Tokenize(const v1::TokenizeRequest& request) const {
  HIPPODROME_ASSIGN_OR_RETURN(const ServedModel* model, Find(request.model()));
  HIPPODROME_ASSIGN_OR_RETURN(const BpeTokenizer* tokenizer, Tokenizer(*model));
  v1::TokenizeResponse response;
  const std::vector<int32_t> ids = tokenizer->Encode(request.text());
  response.mutable_token_ids()->Add(ids.begin(), ids.end());
  return response;
}

absl::StatusOr<v1::DetokenizeResponse> Handlers::Detokenize(
    const v1::DetokenizeRequest& request) const {
  HIPPODROME_ASSIGN_OR_RETURN(const ServedModel* model, Find(request.model()));
  HIPPODROME_ASSIGN_OR_RETURN(const BpeTokenizer* tokenizer, Tokenizer(*model));
  const std::span<const int32_t> ids(request.token_ids().data(), request.token_ids().size());
  HIPPODROME_RETURN_IF_ERROR(ValidateTokenIds(ids, model->info().vocab_size(), "tokens"));
  Utf8Stream characters;
  v1::DetokenizeResponse response;
  response.set_text(characters.Append(tokenizer->Decode(ids)));
  response.mutable_text()->append(characters.Finish());
  return response;
}

v1::ListModelsResponse Handlers::ListModels() const {
  v1::ListModelsResponse response;
  for (const auto& model : models_) *response.add_models() = model->info();
  return response;
}

absl::StatusOr<v1::Model> Handlers::GetModel(const std::string& name) const {
  HIPPODROME_ASSIGN_OR_RETURN(const ServedModel* model, Find(name));
  return model->info();
}

std::string Handlers::ModelName(const std::string& name) const {
  const absl::StatusOr<ServedModel*> model = Find(name);
  return model.ok() ? (*model)->info().name() : "";
}

absl::Status Handlers::Ready() const {
  if (closed_.load()) return Unavailable("the server is stopping");
  const auto now = GenerationBatcher::Clock::now();
  for (const auto& model : models_) {
    if (now - model->batcher().heartbeat() <= kHeartbeatLimit) continue;
    return Unavailable("the engine of model '" + model->info().name() + "' does not respond");
  }
  return absl::OkStatus();
}

void Handlers::Close() {
  closed_.store(true);
  for (const auto& model : models_) model->batcher().Close();
}

void Handlers::Abort() {
  for (const auto& model : models_) {
    model->batcher().Abort(Unavailable("the server has stopped before the text was complete"));
  }
}

int64_t Handlers::pending() const {
  int64_t sum = 0;
  for (const auto& model : models_) sum += model->batcher().pending();
  return sum;
}

}  // namespace hippodrome
