#include "server/json/json_requests.h"

#include <charconv>
#include <system_error>
#include <utility>

#include "engine/base/field_error.h"
#include "engine/base/status.h"
#include "engine/generator.h"
#include "server/handlers/generation_numbers.h"
#include "server/json/state_json.h"
#include "server/states/state_store.h"

namespace hippodrome {
namespace {

constexpr int64_t kMaxChoices = RequestLimits().max_choices;

constexpr ParameterRange kScoresRange = {
    .name = "logprobs",
    .least = kLogProbabilitiesRange.least,
    .most = kLogProbabilitiesRange.most,
    .usual = std::nullopt,
    .about = "asks for log probabilities of tokens, and of so many of the likeliest ones",
    .whole = true};
constexpr ParameterRange kChoicesRange = {.name = "n",
                                          .least = 1,
                                          .most = kMaxChoices,
                                          .usual = 1,
                                          .about = "answers to each prompt",
                                          .whole = true};
constexpr ParameterRange kBestOfRange = {
    .name = "best_of",
    .least = 1,
    .most = kMaxChoices,
    .usual = std::nullopt,
    .about =
        "answers made, of which the likeliest n are given; as many by default; not less, and "
        "not more in a stream",
    .whole = true};

constexpr RequestField kCompletion[] = {
    {"prompt", kTextsOrIdsSchema,
     "a text, token ids, or a list of either; may be missing or empty with a state"},
    {"model", kTextSchema, "a decoder of /v1/models; the first one by default"},
    Ranged(kMaxTokensRange),
    Ranged(kTemperatureRange),
    Ranged(kTopPRange),
    Ranged(kTopKRange),
    Ranged(kMinPRange),
    Ranged(kTypicalPRange),
    {"seed", kSeedSchema, "drawn at random by default; negative ones wrap"},
    Ranged(kPresencePenaltyRange),
    Ranged(kFrequencyPenaltyRange),
    Ranged(kRepetitionPenaltyRange),
    {"logit_bias", R"({"type": "object", "maxProperties": 1024,
        "additionalProperties": {"type": "number", "minimum": -100, "maximum": 100}})",
     "added to the logits of these token ids"},
    {"stop", R"({"oneOf": [{"type": "string", "minLength": 1}, {"type": "array", "maxItems": 16,
        "items": {"type": "string", "minLength": 1}}]})",
     "the text ends before the first of these; each of at most 256 bytes"},
    {"stream", kFlagSchema, "answer with events"},
    {"stream_options", R"({"type": "object", "properties": {
        "include_usage": {"type": "boolean", "default": false},
        "include_obfuscation": {"type": "boolean", "description": "ignored"}}})"},
    Ranged(kChoicesRange),
    Ranged(kBestOfRange),
    Ranged(kScoresRange),
    {"echo", kFlagSchema, "the prompt stands before its answers"},
    {"suffix", R"({"type": "string", "maxLength": 0})", "not supported"},
    {"ignore_eos", kFlagSchema, "go on after the end-of-text token"},
    {"state", kTextSchema,
     "a state to go on from: a handle, or the file in base64; then the prompt is what is new, and "
     "may be empty"},
    {"position", kCountSchema, "go back to so many tokens of the state first"},
    {"return_state", R"({"type": "string", "enum": ["none", "handle", "inline"],
        "default": "none"})",
     "what becomes of the state behind the last token: of one answer to one prompt. A server that "
     "stops gives a handle in any case, with the finish_reason migrated, where another one can go "
     "on"},
    {"state_dtype", R"({"type": "string", "enum": ["f32", "bf16"], "default": "f32"})",
     "numbers of the state that is returned; bf16 halves it, and rounds"},
    {"state_ttl", kCountSchema,
     "seconds that the handle lives; the server's limit by default, and at most"},
    {"cache_prompt", kTrueSchema, "read and fill the prefix tree"},
    {"cache_salt", R"({"type": "string", "maxLength": 256})",
     "what is taken in is shared with requests of the same salt, and of the same API key, alone"},
    {"cache_marks", R"({"type": "array", "maxItems": 64, "items": {"type": "integer",
        "minimum": 1}})",
     "tokens of the prompt behind which the prefix tree should hold a state"},
};

// vLLM's shape.
constexpr RequestField kTokenize[] = {
    {"prompt", kTextSchema, "", true},
    {"model", kTextSchema, "the first model by default"},
    {"add_special_tokens", kTrueSchema, "[CLS] and [SEP] of encoders"},
};

constexpr RequestField kDetokenize[] = {
    {"tokens", R"({"type": "array", "items": {"type": "integer", "minimum": 0}})", "", true},
    {"model", kTextSchema, "the first model by default"},
};

// Refused before it is copied for each prompt.
absl::Status CheckCount(const char* field, const Json& entries, int64_t most) {
  if (static_cast<int64_t>(entries.size()) <= most) return absl::OkStatus();
  return FieldError(
      field, std::to_string(entries.size()) + " entries, expected at most " + std::to_string(most));
}

absl::Status ReadStops(const Json& json, const RequestLimits& limits,
                       v1::GenerateRequest& request) {
  const Json* stop = Find(json, "stop");
  if (stop == nullptr) return absl::OkStatus();
  if (stop->is_string()) {
    request.add_stop(stop->get<std::string>());
    return absl::OkStatus();
  }
  if (!stop->is_array()) return WrongType("stop", "a string or an array of strings", *stop);
  HIPPODROME_RETURN_IF_ERROR(CheckCount("stop", *stop, limits.max_stops));
  for (const Json& entry : *stop) {
    if (!entry.is_string()) return WrongType("stop", "strings", entry);
    request.add_stop(entry.get<std::string>());
  }
  return absl::OkStatus();
}

absl::Status ReadSampling(const Json& json, v1::GenerateRequest& request) {
  HIPPODROME_RETURN_IF_ERROR(ReadGenerationNumbers(JsonNumbers{json}, request));
  HIPPODROME_ASSIGN_OR_RETURN(const auto seed, SeedField(json, "seed"));
  if (seed) request.set_seed(*seed);
  return absl::OkStatus();
}

// {"50256": -100}: ids are written as JSON writes numbers, so that none is there twice.
absl::Status ReadLogitBias(const Json& json, const RequestLimits& limits,
                           v1::GenerateRequest& request) {
  const Json* bias = Find(json, "logit_bias");
  if (bias == nullptr) return absl::OkStatus();
  if (!bias->is_object()) return WrongType("logit_bias", "an object of token ids", *bias);
  HIPPODROME_RETURN_IF_ERROR(CheckCount("logit_bias", *bias, limits.max_logit_bias));
  for (const auto& [name, value] : bias->items()) {
    int32_t id = -1;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), id);
    if (error != std::errc() || id < 0 || std::to_string(id) != name) {
      return FieldError("logit_bias", "\"" + name.substr(0, 32) + "\" is not a token id");
    }
    if (!value.is_number()) return WrongType("logit_bias", "numbers", value);
    (*request.mutable_logit_bias())[id] = static_cast<float>(value.get<double>());
  }
  return absl::OkStatus();
}

// How long the answer is, and what comes with it.
absl::Status ReadAnswer(const Json& json, CompletionCall& call, v1::GenerateRequest& request) {
  HIPPODROME_ASSIGN_OR_RETURN(const auto ignore_eos, BoolField(json, "ignore_eos"));
  request.set_ignore_eos(ignore_eos.value_or(false));
  const Json* scores = Find(json, "logprobs");
  if (scores != nullptr && scores->is_boolean()) {
    return FieldError("logprobs",
                      "expected the number of alternatives for each token; "
                      "true and false are for chats");
  }
  HIPPODROME_ASSIGN_OR_RETURN(const auto count, IntegerField(json, "logprobs"));
  if (!count) return absl::OkStatus();
  HIPPODROME_RETURN_IF_ERROR(CheckParameter(kScoresRange, *count));
  call.scored = true;
  request.set_log_probabilities(static_cast<int32_t>(*count));
  return absl::OkStatus();
}

// What it goes on from. A file is large, and one for all: it is with the first request alone.
absl::Status ReadStart(const Json& json, std::vector<v1::GenerateRequest>& requests) {
  const Json* state = Find(json, "state");
  if (state == nullptr) return absl::OkStatus();
  if (!state->is_string()) return WrongType("state", "a string", *state);
  HIPPODROME_ASSIGN_OR_RETURN(*requests.front().mutable_state(),
                              StateFromText(state->get_ref<const std::string&>()));
  const std::string& start = requests.front().state();
  for (size_t i = 1; i < requests.size() && IsStateHandle(start); ++i) requests[i].set_state(start);
  return absl::OkStatus();
}

// What is to be in the state, and what becomes of it in the end.
absl::Status ReadState(const Json& json, v1::GenerateRequest& request) {
  HIPPODROME_ASSIGN_OR_RETURN(const auto position, IntegerField(json, "position"));
  if (position) request.set_position(*position);
  HIPPODROME_ASSIGN_OR_RETURN(const auto wanted, TextField(json, "return_state"));
  if (wanted == "handle") {
    request.set_return_state(v1::RETURN_STATE_HANDLE);
  } else if (wanted == "inline") {
    request.set_return_state(v1::RETURN_STATE_INLINE);
  } else if (wanted && wanted != "none") {
    return FieldError("return_state", R"(expected "none", "handle" or "inline")");
  }
  HIPPODROME_ASSIGN_OR_RETURN(const auto dtype, TextField(json, "state_dtype"));
  if (dtype == "bf16") {
    request.set_state_dtype(v1::STATE_DTYPE_BF16);
  } else if (dtype && dtype != "f32") {
    return FieldError("state_dtype", R"(expected "f32" or "bf16")");
  }
  HIPPODROME_ASSIGN_OR_RETURN(const auto ttl, IntegerField(json, "state_ttl"));
  if (ttl) request.set_state_ttl(*ttl);
  return absl::OkStatus();
}

// What the prompt shares with others.
absl::Status ReadCaching(const Json& json, v1::GenerateRequest& request) {
  HIPPODROME_ASSIGN_OR_RETURN(const auto cache, BoolField(json, "cache_prompt"));
  if (cache) request.set_cache_prompt(*cache);
  HIPPODROME_ASSIGN_OR_RETURN(const auto salt, TextField(json, "cache_salt"));
  if (salt) request.set_cache_salt(*salt);
  const Json* marks = Find(json, "cache_marks");
  if (marks == nullptr) return absl::OkStatus();
  if (!marks->is_array()) return WrongType("cache_marks", "an array of integers", *marks);
  HIPPODROME_RETURN_IF_ERROR(CheckCount("cache_marks", *marks, kMaxCacheMarks));
  for (const Json& mark : *marks) {
    if (!mark.is_number_integer()) return WrongType("cache_marks", "integers", mark);
    request.add_cache_marks(mark.get<int64_t>());
  }
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
  if (prompt == nullptr) {
    if (Find(json, "state") == nullptr) return FieldError("prompt", "it is missing");
    requests.push_back(common);
    return absl::OkStatus();
  }
  const bool several = prompt->is_array() && !prompt->empty() && !prompt->front().is_number();
  if (!several) {
    requests.push_back(common);
    return ReadPrompt(*prompt, requests.back());
  }
  HIPPODROME_RETURN_IF_ERROR(CheckCount("prompt", *prompt, limits.max_choices));
  for (const Json& entry : *prompt) {
    requests.push_back(common);
    HIPPODROME_RETURN_IF_ERROR(ReadPrompt(entry, requests.back()));
  }
  return absl::OkStatus();
}

// A number of sequences for each prompt.
absl::StatusOr<int64_t> CountField(const Json& json, const char* field, int64_t least,
                                   int64_t most) {
  HIPPODROME_ASSIGN_OR_RETURN(const auto count, IntegerField(json, field));
  const int64_t value = count.value_or(least);
  if (value >= least && value <= most) return value;
  return FieldError(field, std::to_string(value) + " for each prompt, expected " +
                               std::to_string(least) + " to " + std::to_string(most) +
                               " with so many prompts");
}

absl::Status ReadCounts(const Json& json, const RequestLimits& limits, CompletionCall& call) {
  const int64_t most = limits.max_choices / static_cast<int64_t>(call.requests.size());
  HIPPODROME_ASSIGN_OR_RETURN(call.choices, CountField(json, "n", 1, most));
  HIPPODROME_ASSIGN_OR_RETURN(call.candidates, CountField(json, "best_of", call.choices, most));
  if (call.stream && call.candidates > call.choices) {
    return FieldError("best_of", "the best is known at the end alone: not with \"stream\"");
  }
  const int64_t answers = call.candidates * static_cast<int64_t>(call.requests.size());
  if (answers > 1 && call.requests.front().return_state() != v1::RETURN_STATE_NONE) {
    return FieldError("return_state",
                      "expected one answer to one prompt, not " + std::to_string(answers));
  }
  if (call.candidates == call.choices || call.scored) return absl::OkStatus();
  // The best ones are the likeliest.
  for (v1::GenerateRequest& request : call.requests) request.set_log_probabilities(0);
  return absl::OkStatus();
}

absl::Status ReadStreamOptions(const Json& json, CompletionCall& call) {
  HIPPODROME_ASSIGN_OR_RETURN(const auto stream, BoolField(json, "stream"));
  call.stream = stream.value_or(false);
  const Json* options = Find(json, "stream_options");
  if (options == nullptr) return absl::OkStatus();
  if (!options->is_object()) return WrongType("stream_options", "an object", *options);
  // Obfuscation is padding against those who measure packets; without encryption it is nothing.
  constexpr RequestField kOptions[] = {{"include_usage"}, {"include_obfuscation"}};
  HIPPODROME_RETURN_IF_ERROR(CheckFields(*options, kOptions));
  HIPPODROME_ASSIGN_OR_RETURN(const auto usage, BoolField(*options, "include_usage"));
  call.include_usage = usage.value_or(false);
  return absl::OkStatus();
}

absl::Status ReadEcho(const Json& json, CompletionCall& call, v1::GenerateRequest& request) {
  HIPPODROME_ASSIGN_OR_RETURN(const auto echo, BoolField(json, "echo"));
  call.echo = echo.value_or(false);
  request.set_score_prompt(call.echo && call.scored);
  if (request.has_max_tokens() && request.max_tokens() == 0 && !call.echo) {
    return FieldError("max_tokens", "0 needs \"echo\"");
  }
  return absl::OkStatus();
}

absl::Status CheckCompletionFields(const Json& json) {
  if (Find(json, "max_completion_tokens") != nullptr) {
    return FieldError("max_completion_tokens", "this is of chats: use \"max_tokens\"");
  }
  HIPPODROME_ASSIGN_OR_RETURN(const auto suffix, TextField(json, "suffix"));
  if (suffix && !suffix->empty()) {
    return FieldError("suffix", "these models go forward: they cannot fill a gap before a text");
  }
  return CheckFields(json, kCompletion);
}

}  // namespace

const RequestFields kCompletionFields = kCompletion;
const RequestFields kTokenizeFields = kTokenize;
const RequestFields kDetokenizeFields = kDetokenize;

absl::StatusOr<CompletionCall> ParseCompletion(const std::string& body,
                                               const RequestLimits& limits) {
  HIPPODROME_ASSIGN_OR_RETURN(const Json json, ParseObject(body));
  HIPPODROME_RETURN_IF_ERROR(CheckCompletionFields(json));
  CompletionCall call;
  v1::GenerateRequest common;
  HIPPODROME_ASSIGN_OR_RETURN(*common.mutable_model(), ModelField(json));
  HIPPODROME_RETURN_IF_ERROR(ReadSampling(json, common));
  HIPPODROME_RETURN_IF_ERROR(ReadLogitBias(json, limits, common));
  HIPPODROME_RETURN_IF_ERROR(ReadAnswer(json, call, common));
  HIPPODROME_RETURN_IF_ERROR(ReadEcho(json, call, common));
  HIPPODROME_RETURN_IF_ERROR(ReadStops(json, limits, common));
  HIPPODROME_RETURN_IF_ERROR(ReadStreamOptions(json, call));
  HIPPODROME_RETURN_IF_ERROR(ReadState(json, common));
  HIPPODROME_RETURN_IF_ERROR(ReadCaching(json, common));
  HIPPODROME_RETURN_IF_ERROR(ReadPrompts(json, limits, common, call.requests));
  HIPPODROME_RETURN_IF_ERROR(ReadStart(json, call.requests));
  HIPPODROME_RETURN_IF_ERROR(ReadCounts(json, limits, call));
  return call;
}

absl::StatusOr<v1::TokenizeRequest> ParseTokenize(const std::string& body) {
  HIPPODROME_ASSIGN_OR_RETURN(const Json json, ParseObject(body));
  HIPPODROME_RETURN_IF_ERROR(CheckFields(json, kTokenize));
  v1::TokenizeRequest request;
  HIPPODROME_ASSIGN_OR_RETURN(*request.mutable_model(), ModelField(json));
  HIPPODROME_ASSIGN_OR_RETURN(const auto special, BoolField(json, "add_special_tokens"));
  if (special) request.set_add_special_tokens(*special);
  HIPPODROME_ASSIGN_OR_RETURN(auto prompt, TextField(json, "prompt"));
  if (!prompt) return FieldError("prompt", "it is missing");
  request.set_text(*std::move(prompt));
  return request;
}

absl::StatusOr<v1::DetokenizeRequest> ParseDetokenize(const std::string& body) {
  HIPPODROME_ASSIGN_OR_RETURN(const Json json, ParseObject(body));
  HIPPODROME_RETURN_IF_ERROR(CheckFields(json, kDetokenize));
  v1::DetokenizeRequest request;
  HIPPODROME_ASSIGN_OR_RETURN(*request.mutable_model(), ModelField(json));
  const Json* tokens = Find(json, "tokens");
  if (tokens == nullptr) return FieldError("tokens", "it is missing");
  HIPPODROME_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, TokenIdArray(*tokens, "tokens"));
  request.mutable_token_ids()->Add(ids.begin(), ids.end());
  return request;
}

}  // namespace hippodrome
