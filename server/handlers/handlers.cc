#include "server/handlers/handlers.h"

#include <optional>
#include <utility>

#include "engine/base/field_error.h"
#include "engine/base/status.h"
#include "server/handlers/generation_call.h"

namespace hippodrome {

Handlers::Handlers(std::vector<std::unique_ptr<ServedModel>> models, const RequestLimits& limits,
                   const StateOptions& states)
    : states_(models_, states),
      models_(std::move(models)),
      limits_(limits),
      encoding_(models_, limits_) {}

absl::StatusOr<std::unique_ptr<Generation>> Handlers::Generate(const v1::GenerateRequest& request,
                                                               const Caller& caller) {
  HIPPODROME_ASSIGN_OR_RETURN(CompletionGroup made, Complete({&request, 1}, 1, caller));
  return std::move(made.generations.front());
}

absl::StatusOr<CompletionGroup> Handlers::Complete(std::span<const v1::GenerateRequest> requests,
                                                   int64_t choices, const Caller& caller) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::shared_ptr<ServedDecoder> model,
                              models_.FindDecoder(requests.front().model()));
  return Complete(model, requests, choices, caller);
}

absl::StatusOr<CompletionGroup> Handlers::Complete(const std::shared_ptr<ServedDecoder>& model,
                                                   std::span<const v1::GenerateRequest> requests,
                                                   int64_t choices, const Caller& caller) {
  HIPPODROME_RETURN_IF_ERROR(caller.MayRun(model->info().name()));
  if (closed_.load()) return Unavailable("the server is stopping");
  std::vector<GenerationCall> calls;
  int64_t scores = 0;
  for (const v1::GenerateRequest& request : requests) {
    HIPPODROME_ASSIGN_OR_RETURN(calls.emplace_back(), ToCall(request, *model, limits_, caller));
    scores += choices * Scores(calls.back());
  }
  CompletionGroup made{.model = model};
  for (const GenerationCall& call : calls) made.prompts.push_back(call.request.prompt);
  HIPPODROME_RETURN_IF_ERROR(AddStates(*model, requests, choices, caller, calls));
  HIPPODROME_RETURN_IF_ERROR(CheckScores(scores, limits_));
  for (size_t p = 0; p < calls.size(); ++p) {
    const uint64_t seed = calls[p].request.sampling.seed;
    for (int64_t i = 0; i < choices; ++i) {
      GenerationCall call = calls[p];
      call.request.sampling.seed = ChoiceSeed(seed, requests[p].choice() + i);
      HIPPODROME_ASSIGN_OR_RETURN(made.generations.emplace_back(), model->Submit(std::move(call)));
    }
  }
  return made;
}

absl::Status Handlers::AddStates(const ServedDecoder& model,
                                 std::span<const v1::GenerateRequest> requests, int64_t choices,
                                 const Caller& caller, std::vector<GenerationCall>& calls) {
  const v1::GenerateRequest& first = requests.front();
  std::optional<StartingPoint> start;
  if (!first.state().empty()) {
    HIPPODROME_ASSIGN_OR_RETURN(std::shared_ptr<const SavedState> state,
                                states_.Load(first.state(), model, caller));
    const int64_t position = first.has_position() ? first.position() : state->position;
    HIPPODROME_ASSIGN_OR_RETURN(start, GoBack(std::move(state), position));
  } else if (first.has_position()) {
    return FieldError("position", "it needs a state");
  }
  const SavedState* state = start ? start->state.get() : nullptr;
  for (size_t i = 0; i < calls.size(); ++i) {
    if (start) HIPPODROME_RETURN_IF_ERROR(GoOnFrom(*start, requests[i], calls[i]));
    HIPPODROME_ASSIGN_OR_RETURN(calls[i].keep_state,
                                states_.Keeper(requests[i], model, state, caller));
    if (calls[i].keep_state) {
      calls[i].request.checkpoint_interval = states_.options().checkpoint_interval;
    }
  }
  // An answer has room for one state, and that has no log probabilities.
  if (caller.may_migrate && calls.size() == 1 && choices == 1 && !first.score_prompt()) {
    calls.front().migrate = states_.Migrator(first, model, state, caller);
  }
  for (GenerationCall& call : calls) call.request.keep_tokens = call.keep_state || call.migrate;
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<PendingScore>> Handlers::Score(const v1::ScoreRequest& request,
                                                              const Caller& caller) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::shared_ptr<ServedDecoder> model,
                              models_.FindDecoder(request.model()));
  HIPPODROME_RETURN_IF_ERROR(caller.MayRun(model->info().name()));
  if (closed_.load()) return Unavailable("the server is stopping");
  return hippodrome::Score(request, *model, limits_, caller);
}

absl::StatusOr<v1::TokenizeResponse> Handlers::Tokenize(const v1::TokenizeRequest& request) const {
  HIPPODROME_ASSIGN_OR_RETURN(const std::shared_ptr<ServedModel> model,
                              models_.Find(request.model()));
  const bool special = !request.has_add_special_tokens() || request.add_special_tokens();
  HIPPODROME_ASSIGN_OR_RETURN(const std::vector<int32_t> ids,
                              model->Tokenize(request.text(), special));
  v1::TokenizeResponse response;
  response.mutable_token_ids()->Add(ids.begin(), ids.end());
  return response;
}

absl::StatusOr<v1::DetokenizeResponse> Handlers::Detokenize(
    const v1::DetokenizeRequest& request) const {
  HIPPODROME_ASSIGN_OR_RETURN(const std::shared_ptr<ServedModel> model,
                              models_.Find(request.model()));
  const std::span<const int32_t> ids(request.token_ids().data(), request.token_ids().size());
  HIPPODROME_ASSIGN_OR_RETURN(std::string text, model->Detokenize(ids));
  v1::DetokenizeResponse response;
  response.set_text(std::move(text));
  return response;
}

absl::StatusOr<std::vector<PlacedToken>> Handlers::PlaceTokens(const std::string& model,
                                                               const std::string& text,
                                                               bool add_special) const {
  HIPPODROME_ASSIGN_OR_RETURN(const std::shared_ptr<ServedModel> found, models_.Find(model));
  return hippodrome::PlaceTokens(*found, text, add_special);
}

absl::StatusOr<std::string> Handlers::Decode(const std::string& model, std::span<const int32_t> ids,
                                             bool skip_special) const {
  HIPPODROME_ASSIGN_OR_RETURN(const std::shared_ptr<ServedModel> found, models_.Find(model));
  std::vector<int32_t> kept;
  for (const int32_t id : ids) {
    if (!skip_special || !IsSpecialToken(*found, id)) kept.push_back(id);
  }
  return found->Detokenize(kept);
}

absl::StatusOr<TokenizerInfo> Handlers::DescribeTokenizer(const std::string& name) const {
  const absl::StatusOr<std::shared_ptr<ServedDecoder>> decoder = models_.FindDecoder(name);
  if (decoder.ok()) return (*decoder)->DescribeTokenizer();
  HIPPODROME_ASSIGN_OR_RETURN(const std::shared_ptr<ServedModel> model, models_.Find(name));
  return model->DescribeTokenizer();
}

v1::ListModelsResponse Handlers::ListModels() const {
  v1::ListModelsResponse response;
  for (const auto& model : *models_.all()) *response.add_models() = model->info();
  return response;
}

absl::StatusOr<v1::Model> Handlers::GetModel(const std::string& name) const {
  HIPPODROME_ASSIGN_OR_RETURN(const std::shared_ptr<ServedModel> model, models_.Find(name));
  return model->info();
}

std::string Handlers::ModelName(const std::string& name) const {
  const absl::StatusOr<std::shared_ptr<ServedDecoder>> model = models_.FindDecoder(name);
  return model.ok() ? (*model)->info().name() : "";
}

absl::Status Handlers::Ready() const {
  if (stopping_.load()) return Unavailable("the server is stopping");
  const std::shared_ptr<const ModelList::Models> models = models_.all();
  if (models->empty()) return Unavailable("no model is loaded");
  const auto now = ServedModel::Clock::now();
  for (const auto& model : *models) {
    if (!model->sound()) {
      return Unavailable("model '" + model->info().name() +
                         "' has computed a value that is not a number");
    }
    if (now - model->heartbeat() <= model->longest_turn()) continue;
    return Unavailable("the engine of model '" + model->info().name() + "' does not respond");
  }
  return absl::OkStatus();
}

void Handlers::Close() {
  AnnounceStop();
  closed_.store(true);
  models_.Close();
}

void Handlers::Migrate() {
  if (states_.shared()) models_.Migrate();
}

void Handlers::Abort() {
  models_.Abort(Unavailable("the server has stopped before the answer was complete"));
}

int64_t Handlers::pending() const { return models_.pending(); }

}  // namespace hippodrome
