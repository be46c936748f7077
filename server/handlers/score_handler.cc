#include "server/handlers/score_handler.h"

#include <fmt/format.h>

#include <span>

#include "engine/base/check_range.h"
#include "engine/base/field_error.h"
#include "engine/base/status.h"
#include "server/handlers/generation_call.h"

namespace hippodrome {
namespace {

// The tokens of a context or continuation; `field` names it in errors.
template <typename Message>
absl::StatusOr<std::vector<int32_t>> Tokens(const Message& message, const std::string& field,
                                            const ServedDecoder& model) {
  std::vector<int32_t> ids;
  if (message.has_text()) {
    HIPPODROME_ASSIGN_OR_RETURN(const BpeTokenizer* tokenizer, model.Tokenizer());
    ids = tokenizer->Encode(message.text());
  } else {
    ids.assign(message.token_ids().ids().begin(), message.token_ids().ids().end());
  }
  if (ids.empty()) return FieldError(field, "expected one token or more");
  HIPPODROME_RETURN_IF_ERROR(CheckTokenIds(field, ids, model.info().vocab_size()));
  return ids;
}

// A sequence that takes in both, and makes nothing. With others behind the same context, which is
// taken in once.
GenerationCall CallOf(std::span<const int32_t> context, std::span<const int32_t> continuation,
                      const Caller& caller, bool others) {
  GenerationCall call;
  call.request.prompt.assign(context.begin(), context.end());
  call.request.prompt.insert(call.request.prompt.end(), continuation.begin(), continuation.end());
  call.request.max_tokens = 1;
  call.request.sampling.temperature = 0;
  call.request.likeliest = 1;
  call.request.score_prompt = true;
  call.request.score_from = std::ssize(context);
  if (others) call.request.shared_tokens = std::ssize(context);
  call.request.cache_salt = CacheSalt(caller, "");
  // What the next call with this context can begin with: the last of its tokens is left over.
  if (context.size() > 1) call.request.cache_marks = {std::ssize(context) - 1};
  call.prompt_only = true;
  call.caller = caller;
  return call;
}

// `scores`: of the tokens of the continuation.
void Summarise(std::span<const int32_t> continuation, std::span<const TokenScores> scores,
               bool per_token, v1::ScoreResponse::Score& out) {
  double sum = 0;
  bool greedy = true;
  for (const TokenScores& token : scores) {
    sum += token.log_probability;
    greedy = greedy && token.log_probability == token.likeliest.front().log_probability;
    if (per_token) out.add_token_log_probabilities(token.log_probability);
  }
  out.set_log_probability(sum);
  out.set_tokens(static_cast<int64_t>(continuation.size()));
  out.set_greedy(greedy);
  if (per_token) out.mutable_token_ids()->Add(continuation.begin(), continuation.end());
}

}  // namespace

void PendingScore::OnReady(const std::function<void()>& wake) {
  for (Part& part : parts_) {
    if (part.generation != nullptr) part.generation->OnUpdate(wake);
  }
}

std::optional<absl::StatusOr<v1::ScoreResponse>> PendingScore::Take() {
  while (static_cast<size_t>(response_.scores_size()) < parts_.size()) response_.add_scores();
  for (size_t i = 0; i < parts_.size(); ++i) {
    Part& part = parts_[i];
    if (part.generation == nullptr) continue;
    const std::optional<StreamUpdate> update = part.generation->Take();
    if (!update) continue;
    if (!update->status.ok()) return update->status;
    const std::span<const TokenScores> scores(update->prompt_scores);
    Summarise(part.continuation, scores.last(part.continuation.size()), per_token_,
              *response_.mutable_scores(static_cast<int>(i)));
    v1::Usage& usage = *response_.mutable_usage();
    usage.set_prompt_tokens(usage.prompt_tokens() + update->prompt_tokens);
    v1::Usage::PromptTokensDetails& details = *usage.mutable_prompt_tokens_details();
    details.set_cached_tokens(details.cached_tokens() + update->cached_tokens);
    part.generation.reset();
    --unfinished_;
  }
  if (unfinished_ > 0) return std::nullopt;
  return std::move(response_);
}

absl::StatusOr<std::unique_ptr<PendingScore>> Score(const v1::ScoreRequest& request,
                                                    ServedDecoder& model,
                                                    const RequestLimits& limits,
                                                    const Caller& caller) {
  const int count = request.continuations_size();
  if (count < 1 || count > limits.max_choices) {
    return FieldError("continuations",
                      fmt::format("{} continuations, expected 1 to {}", count, limits.max_choices));
  }
  HIPPODROME_ASSIGN_OR_RETURN(const std::vector<int32_t> context,
                              Tokens(request, "context", model));
  std::vector<PendingScore::Part> parts;
  int64_t scores = 0;
  for (const auto& continuation : request.continuations()) {
    HIPPODROME_ASSIGN_OR_RETURN(std::vector<int32_t> ids,
                                Tokens(continuation, "continuations", model));
    scores += 2 * std::ssize(ids);
    parts.push_back({nullptr, std::move(ids)});
  }
  HIPPODROME_RETURN_IF_ERROR(CheckScores(scores, limits));
  for (PendingScore::Part& part : parts) {
    HIPPODROME_ASSIGN_OR_RETURN(
        part.generation, model.Submit(CallOf(context, part.continuation, caller, count > 1)));
  }
  return std::make_unique<PendingScore>(model.info().name(), std::move(parts), request.per_token());
}

}  // namespace hippodrome
