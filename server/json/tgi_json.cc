#include "server/json/tgi_json.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "engine/base/field_error.h"
#include "engine/base/status.h"
#include "server/handlers/generation_numbers.h"
#include "server/json/written_log_probability.h"
#include "server/options.h"

namespace hippodrome {
namespace {

using TgiJson = nlohmann::ordered_json;

constexpr RequestField kFields[] = {
    {"inputs", R"({"type": "string", "minLength": 1})", "the prompt", true},
    {"parameters", R"({"$ref": "#/components/schemas/TgiParameters"})", ""},
    {"stream", R"({"type": "boolean", "default": false})", "answer with events; on / alone"},
    {"model", R"({"type": "string"})", "a decoder of /v1/models; the first one by default"},
};

constexpr ParameterRange kNewTokensRange = {.name = "max_new_tokens",
                                            .least = 1,
                                            .most = kMaxTokensRange.most,
                                            .usual = 1024,
                                            .about = "new tokens",
                                            .whole = true};
constexpr ParameterRange kTruncateRange = {.name = "truncate",
                                           .least = 1,
                                           .most = kMaxTokensRange.most,
                                           .usual = std::nullopt,
                                           .about = "tokens kept of the prompt's end",
                                           .whole = true};
constexpr ParameterRange kCandidatesRange = {
    .name = "best_of",
    .least = 1,
    .most = RequestLimits().max_choices,
    .usual = 1,
    .about =
        "answers drawn, of which the likeliest is given; more than one need sampling, and no "
        "stream",
    .whole = true};
constexpr ParameterRange kTopTokensRange = {
    .name = "top_n_tokens",
    .least = 0,
    .most = kLogProbabilitiesRange.most,
    .usual = 0,
    .about = "so many of the likeliest tokens in the place of each one, in the details",
    .whole = true};

constexpr RequestField kParameters[] = {
    Ranged(kNewTokensRange),
    {"do_sample", kFlagSchema,
     "false without temperature, top_k, top_p and typical_p: the likeliest token is taken"},
    Ranged(kTemperatureRange),
    Ranged(kTopKRange),
    Ranged(kTopPRange),
    Ranged(kTypicalPRange),
    Ranged(kRepetitionPenaltyRange),
    Ranged(kFrequencyPenaltyRange),
    {"seed", kSeedSchema, "drawn at random by default; negative ones wrap"},
    {"stop", R"({"type": "array", "maxItems": 16, "items": {"type": "string", "minLength": 1}})",
     "the text ends before the first of these; each of at most 256 bytes"},
    Ranged(kTruncateRange),
    Ranged(kCandidatesRange),
    {"return_full_text", kFlagSchema, "the prompt in front of the text"},
    {"details", kFlagSchema, "the tokens, and why they end"},
    {"decoder_input_details", kFlagSchema, "the prompt's tokens too; needs details, and no stream"},
    Ranged(kTopTokensRange),
    {"watermark", R"({"type": "boolean", "const": false})", "not supported"},
    {"grammar", R"({"type": "null"})", "not supported"},
    {"adapter_id", R"({"type": "null"})", "not supported"},
};

// Fields that change the answer and are not there, but for the values that ask for nothing.
absl::Status RefuseOthers(const Json& parameters) {
  HIPPODROME_ASSIGN_OR_RETURN(const auto watermark, BoolField(parameters, "watermark"));
  if (watermark.value_or(false)) return Unsupported("watermark");
  for (const char* field : {"grammar", "adapter_id"}) {
    if (Find(parameters, field) != nullptr) return Unsupported(field);
  }
  return absl::OkStatus();
}

// The value of a whole number in its range.
absl::StatusOr<std::optional<int64_t>> RangedField(const Json& parameters,
                                                   const ParameterRange& range) {
  HIPPODROME_ASSIGN_OR_RETURN(const auto value, IntegerField(parameters, range.name));
  if (value) HIPPODROME_RETURN_IF_ERROR(CheckParameter(range, *value));
  return value;
}

absl::Status ReadTgiSampling(const Json& parameters, TgiCall& call) {
  v1::GenerateRequest& request = call.request;
  HIPPODROME_RETURN_IF_ERROR(ReadGenerationNumbers(JsonNumbers{parameters}, request));
  HIPPODROME_ASSIGN_OR_RETURN(const auto do_sample, BoolField(parameters, "do_sample"));
  HIPPODROME_ASSIGN_OR_RETURN(const auto seed, SeedField(parameters, "seed"));
  if (seed) request.set_seed(*seed);
  call.sampled = do_sample.value_or(false) || request.has_temperature() || request.has_top_k() ||
                 request.has_top_p() || request.has_typical_p();
  if (!call.sampled) request.set_temperature(0);
  HIPPODROME_ASSIGN_OR_RETURN(const auto candidates, RangedField(parameters, kCandidatesRange));
  call.candidates = candidates.value_or(1);
  if (call.candidates == 1 || call.sampled) return absl::OkStatus();
  return FieldError("best_of", "answers differ with sampling alone: set \"do_sample\"");
}

absl::Status ReadTgiStop(const Json& parameters, v1::GenerateRequest& request) {
  const Json* stop = Find(parameters, "stop");
  if (stop == nullptr) return absl::OkStatus();
  if (!stop->is_array()) return WrongType("stop", "an array of strings", *stop);
  for (const Json& entry : *stop) {
    if (!entry.is_string()) return WrongType("stop", "strings", entry);
    request.add_stop(entry.get<std::string>());
  }
  return absl::OkStatus();
}

absl::Status ReadDetails(const Json& parameters, TgiCall& call) {
  HIPPODROME_ASSIGN_OR_RETURN(const auto details, BoolField(parameters, "details"));
  call.details = details.value_or(false);
  HIPPODROME_ASSIGN_OR_RETURN(const auto prefill, BoolField(parameters, "decoder_input_details"));
  call.prefill = prefill.value_or(false);
  if (call.prefill && !call.details) {
    return FieldError("decoder_input_details", "it needs \"details\"");
  }
  call.request.set_score_prompt(call.prefill);
  HIPPODROME_ASSIGN_OR_RETURN(const auto top, RangedField(parameters, kTopTokensRange));
  // The best candidate is the likeliest.
  if (call.details || call.candidates > 1 || top) {
    call.request.set_log_probabilities(static_cast<int32_t>(top.value_or(0)));
  }
  return absl::OkStatus();
}

absl::Status ReadParameters(const Json& parameters, TgiCall& call) {
  HIPPODROME_RETURN_IF_ERROR(CheckFields(parameters, kParameters));
  HIPPODROME_RETURN_IF_ERROR(RefuseOthers(parameters));
  HIPPODROME_RETURN_IF_ERROR(ReadTgiSampling(parameters, call));
  HIPPODROME_RETURN_IF_ERROR(ReadTgiStop(parameters, call.request));
  HIPPODROME_ASSIGN_OR_RETURN(const auto tokens, RangedField(parameters, kNewTokensRange));
  call.request.set_max_tokens(tokens.value_or(static_cast<int64_t>(*kNewTokensRange.usual)));
  HIPPODROME_ASSIGN_OR_RETURN(call.truncate, RangedField(parameters, kTruncateRange));
  HIPPODROME_ASSIGN_OR_RETURN(const auto full, BoolField(parameters, "return_full_text"));
  call.full_text = full.value_or(false);
  return ReadDetails(parameters, call);
}

const char* FinishName(TgiFinish finish) {
  switch (finish) {
    case TgiFinish::kLength:
      return "length";
    case TgiFinish::kEndOfText:
      return "eos_token";
    case TgiFinish::kStopString:
      return "stop_sequence";
  }
  return "length";
}

TgiJson TokenJson(const TgiToken& token) {
  TgiJson json = {{"id", token.id}, {"text", token.text}};
  json["logprob"] =
      token.log_probability ? TgiJson(WrittenLogProbability(*token.log_probability)) : nullptr;
  json["special"] = token.special;
  return json;
}

TgiJson PrefillJson(const TgiToken& token) {
  TgiJson json = TokenJson(token);
  json.erase("special");
  return json;
}

template <typename Values, typename Convert>
TgiJson ListOf(const Values& values, Convert convert) {
  TgiJson list = TgiJson::array();
  for (const auto& value : values) list.push_back(convert(value));
  return list;
}

TgiJson TokensJson(const std::vector<TgiToken>& tokens) { return ListOf(tokens, TokenJson); }

// What streams say in the end, and whole answers begin with.
TgiJson Details(const TgiCall& call, const TgiResult& result) {
  return {{"finish_reason", FinishName(result.finish)},
          {"generated_tokens", result.tokens.size()},
          {"seed", call.sampled ? TgiJson(result.seed) : TgiJson(nullptr)}};
}

TgiJson WholeDetails(const TgiCall& call, const TgiResult& result) {
  TgiJson details = Details(call, result);
  details["prefill"] = ListOf(result.prefill, PrefillJson);
  details["tokens"] = TokensJson(result.tokens);
  if (!result.top_tokens.empty()) details["top_tokens"] = ListOf(result.top_tokens, TokensJson);
  return details;
}

std::string GeneratedText(const TgiCall& call, const TgiResult& result) {
  return call.full_text ? call.inputs + result.text : result.text;
}

// One of those that were not the best.
TgiJson SequenceJson(const TgiCall& call, const TgiResult& result) {
  TgiJson json = {{"generated_text", GeneratedText(call, result)}};
  json.update(WholeDetails(call, result));
  return json;
}

std::string DumpTgi(const TgiJson& json) {
  return json.dump(-1, ' ', false, TgiJson::error_handler_t::replace);
}

}  // namespace

const RequestFields kTgiFields = kFields;
const RequestFields kTgiParameters = kParameters;

absl::StatusOr<TgiCall> ParseTgi(const std::string& body) {
  HIPPODROME_ASSIGN_OR_RETURN(const Json json, ParseObject(body));
  HIPPODROME_RETURN_IF_ERROR(CheckFields(json, kFields));
  TgiCall call;
  HIPPODROME_ASSIGN_OR_RETURN(*call.request.mutable_model(), ModelField(json));
  HIPPODROME_ASSIGN_OR_RETURN(auto inputs, TextField(json, "inputs"));
  if (!inputs || inputs->empty()) return FieldError("inputs", "expected a text");
  call.inputs = *std::move(inputs);
  HIPPODROME_ASSIGN_OR_RETURN(const auto stream, BoolField(json, "stream"));
  call.stream = stream.value_or(false);
  const Json* parameters = Find(json, "parameters");
  if (parameters != nullptr && !parameters->is_object()) {
    return WrongType("parameters", "an object", *parameters);
  }
  HIPPODROME_RETURN_IF_ERROR(
      ReadParameters(parameters == nullptr ? Json::object() : *parameters, call));
  call.request.set_text(call.inputs);
  return call;
}

absl::Status MakeStreamed(TgiCall& call) {
  call.stream = true;
  if (call.candidates > 1) {
    return FieldError("best_of", "the best is known at the end alone: not in a stream");
  }
  if (call.prefill) return FieldError("decoder_input_details", "streams do not have them");
  if (!call.request.has_log_probabilities()) call.request.set_log_probabilities(0);
  return absl::OkStatus();
}

std::string TgiBody(const TgiCall& call, std::span<const TgiResult> results, bool listed) {
  TgiJson answer = {{"generated_text", GeneratedText(call, results.front())}};
  if (call.details) {
    answer["details"] = WholeDetails(call, results.front());
    if (results.size() > 1) {
      answer["details"]["best_of_sequences"] = ListOf(
          results.subspan(1), [&](const TgiResult& result) { return SequenceJson(call, result); });
    }
  }
  return DumpTgi(listed ? TgiJson::array({answer}) : answer);
}

std::string TgiEvent(const TgiCall& call, const TgiResult& result, size_t index, bool last) {
  TgiJson event = {{"index", index + 1}, {"token", TokenJson(result.tokens[index])}};
  if (!result.top_tokens.empty()) event["top_tokens"] = TokensJson(result.top_tokens[index]);
  event["generated_text"] = last ? TgiJson(GeneratedText(call, result)) : TgiJson(nullptr);
  event["details"] = last && call.details ? Details(call, result) : TgiJson(nullptr);
  return DumpTgi(event);
}

}  // namespace hippodrome
