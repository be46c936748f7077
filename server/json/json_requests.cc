#include "server/json/json_requests.h"

#include <utility>

#include "engine/base/field_error.h"
#include "engine/base/status.h"
#include "server/json/json_fields.h"

namespace hippodrome {
namespace {

// Fields of the OpenAI interface that would change the answer, and are not there yet.
absl::Status RefuseUnsupported(const Json& json) {
  if (Find(json, "logprobs") != nullptr) return Unsupported("logprobs");
  for (const char* field : {"n", "best_of"}) {
    HIPPODROME_ASSIGN_OR_RETURN(const auto count, IntegerField(json, field));
    if (count && *count != 1) return FieldError(field, "this server supports 1 alone");
  }
  HIPPODROME_ASSIGN_OR_RETURN(const auto echo, BoolField(json, "echo"));
  if (echo.value_or(false)) return Unsupported("echo");
  HIPPODROME_ASSIGN_OR_RETURN(const auto suffix, TextField(json, "suffix"));
  if (suffix && !suffix->empty()) return Unsupported("suffix");
  for (const char* field : {"presence_penalty", "frequency_penalty"}) {
    HIPPODROME_ASSIGN_OR_RETURN(const auto penalty, NumberField(json, field));
    if (penalty.value_or(0) != 0) return Unsupported(field);
  }
  const Json* bias = Find(json, "logit_bias");
  if (bias != nullptr && !bias->empty()) return Unsupported("logit_bias");
  return absl::OkStatus();
}

absl::Status ReadStops(const Json& json, v1::GenerateRequest& request) {
  const Json* stop = Find(json, "stop");
  if (stop == nullptr) return absl::OkStatus();
  if (stop->is_string()) {
    request.add_stop(stop->get<std::string>());
    return absl::OkStatus();
  }
  if (!stop->is_array()) return WrongType("stop", "a string or an array of strings", *stop);
  for (const Json& entry : *stop) {
    if (!entry.is_string()) return WrongType("stop", "strings", entry);
    request.add_stop(entry.get<std::string>());
  }
  return absl::OkStatus();
}

// Numbers too large for a float become infinite, which no range allows.
absl::Status ReadSampling(const Json& json, v1::GenerateRequest& request) {
  HIPPODROME_ASSIGN_OR_RETURN(const auto max_tokens, IntegerField(json, "max_tokens"));
  if (max_tokens) request.set_max_tokens(*max_tokens);
  HIPPODROME_ASSIGN_OR_RETURN(const auto temperature, NumberField(json, "temperature"));
  if (temperature) request.set_temperature(static_cast<float>(*temperature));
  HIPPODROME_ASSIGN_OR_RETURN(const auto top_p, NumberField(json, "top_p"));
  if (top_p) request.set_top_p(static_cast<float>(*top_p));
  HIPPODROME_ASSIGN_OR_RETURN(const auto top_k, IntegerField(json, "top_k"));
  if (top_k) request.set_top_k(*top_k);
  HIPPODROME_ASSIGN_OR_RETURN(const auto min_p, NumberField(json, "min_p"));
  if (min_p) request.set_min_p(static_cast<float>(*min_p));
  HIPPODROME_ASSIGN_OR_RETURN(const auto seed, SeedField(json, "seed"));
  if (seed) request.set_seed(*seed);
  HIPPODROME_ASSIGN_OR_RETURN(const auto ignore_eos, BoolField(json, "ignore_eos"));
  request.set_ignore_eos(ignore_eos.value_or(false));
  return absl::OkStatus();
}

absl::Status ReadPrompt(const Json& prompt, v1::GenerateRequest& request) {
  if (prompt.is_string()) {
    request.set_text(prompt.get<std::string>());
    return absl::OkStatus();
  }
  HIPPODROME_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, TokenIdArray(prompt, "prompt"));
  request.mutable_token_ids()->mutable_ids()->Add(ids.begin(), ids.end());
  return absl::OkStatus();
}

// "text", [1, 2], ["text", "text"] or [[1, 2], [3]].
absl::Status ReadPrompts(const Json& json, const RequestLimits& limits,
                         const v1::GenerateRequest& common,
                         std::vector<v1::GenerateRequest>& requests) {
  const Json* prompt = Find(json, "prompt");
  if (prompt == nullptr) return FieldError("prompt", "it is missing");
  const bool several = prompt->is_array() && !prompt->empty() && !prompt->front().is_number();
  if (!several) {
    requests.push_back(common);
    return ReadPrompt(*prompt, requests.back());
  }
  if (static_cast<int64_t>(prompt->size()) > limits.max_prompts) {
    return FieldError("prompt", std::to_string(prompt->size()) + " prompts, expected at most " +
                                    std::to_string(limits.max_prompts));
  }
  for (const Json& entry : *prompt) {
    requests.push_back(common);
    HIPPODROME_RETURN_IF_ERROR(ReadPrompt(entry, requests.back()));
  }
  return absl::OkStatus();
}

absl::Status ReadStreamOptions(const Json& json, CompletionCall& call) {
  HIPPODROME_ASSIGN_OR_RETURN(const auto stream, BoolField(json, "stream"));
  call.stream = stream.value_or(false);
  const Json* options = Find(json, "stream_options");
  if (options == nullptr) return absl::OkStatus();
  if (!options->is_object()) return WrongType("stream_options", "an object", *options);
  HIPPODROME_ASSIGN_OR_RETURN(const auto usage, BoolField(*options, "include_usage"));
  call.include_usage = usage.value_or(false);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CompletionCall> ParseCompletion(const std::string& body,
                                               const RequestLimits& limits) {
  HIPPODROME_ASSIGN_OR_RETURN(const Json json, ParseObject(body));
  HIPPODROME_RETURN_IF_ERROR(RefuseUnsupported(json));
  v1::GenerateRequest common;
  HIPPODROME_ASSIGN_OR_RETURN(*common.mutable_model(), ModelField(json));
  HIPPODROME_RETURN_IF_ERROR(ReadSampling(json, common));
  HIPPODROME_RETURN_IF_ERROR(ReadStops(json, common));
  CompletionCall call;
  HIPPODROME_RETURN_IF_ERROR(ReadStreamOptions(json, call));
  HIPPODROME_RETURN_IF_ERROR(ReadPrompts(json, limits, common, call.requests));
  return call;
}

absl::StatusOr<v1::TokenizeRequest> ParseTokenize(const std::string& body) {
  HIPPODROME_ASSIGN_OR_RETURN(const Json json, ParseObject(body));
  v1::TokenizeRequest request;
  HIPPODROME_ASSIGN_OR_RETURN(*request.mutable_model(), ModelField(json));
  HIPPODROME_ASSIGN_OR_RETURN(auto prompt, TextField(json, "prompt"));
  if (!prompt) return FieldError("prompt", "it is missing");
  request.set_text(*std::move(prompt));
  return request;
}

absl::StatusOr<v1::DetokenizeRequest> ParseDetokenize(const std::string& body) {
  HIPPODROME_ASSIGN_OR_RETURN(const Json json, ParseObject(body));
  v1::DetokenizeRequest request;
  HIPPODROME_ASSIGN_OR_RETURN(*request.mutable_model(), ModelField(json));
  const Json* tokens = Find(json, "tokens");
  if (tokens == nullptr) return FieldError("tokens", "it is missing");
  HIPPODROME_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, TokenIdArray(*tokens, "tokens"));
  request.mutable_token_ids()->Add(ids.begin(), ids.end());
  return request;
}

}  // namespace hippodrome
