#include "server/json/tgi_json.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "engine/base/field_error.h"
#include "engine/base/status.h"
#include "server/json/json_fields.h"

namespace hippodrome {
namespace {

using TgiJson = nlohmann::ordered_json;

constexpr int64_t kDefaultNewTokens = 1024;

constexpr RequestField kFields[] = {
    {"inputs", R"({"type": "string", "minLength": 1})", "the prompt", true},
    {"parameters", R"({"$ref": "#/components/schemas/TgiParameters"})", ""},
    {"stream", R"({"type": "boolean", "default": false})", "answer with events; on / alone"},
    {"model", R"({"type": "string"})", "a decoder of /v1/models; the first one by default"},
};

constexpr RequestField kParameters[] = {
    {"max_new_tokens", R"({"type": "integer", "minimum": 1, "default": 1024})", ""},
    {"do_sample", R"({"type": "boolean", "default": false})",
     "false without temperature, top_k and top_p: the likeliest token is taken"},
    {"temperature", R"({"type": "number", "minimum": 0, "maximum": 100, "default": 1})", ""},
    {"top_k", R"({"type": "integer", "minimum": 0, "maximum": 1073741824})", ""},
    {"top_p", R"({"type": "number", "exclusiveMinimum": 0, "maximum": 1, "default": 1})", ""},
    {"seed", R"({"type": "integer"})", "drawn at random by default"},
    {"stop", R"({"type": "array", "items": {"type": "string"}})",
     "the text ends before the first of these"},
    {"truncate", R"({"type": "integer", "minimum": 1})", "tokens kept of the prompt's end"},
    {"return_full_text", R"({"type": "boolean", "default": false})", ""},
    {"details", R"({"type": "boolean", "default": false})", ""},
    {"typical_p", R"({"type": "number", "const": 1})", "1 alone, which is off"},
    {"repetition_penalty", R"({"type": "number", "const": 1})", "1 alone, which is off"},
    {"frequency_penalty", R"({"type": "number", "const": 0})", "0 alone, which is off"},
    {"watermark", R"({"type": "boolean", "const": false})", "not supported"},
    {"decoder_input_details", R"({"type": "boolean", "const": false})", "not supported"},
    {"top_n_tokens", R"({"type": "null"})", "not supported"},
    {"grammar", R"({"type": "null"})", "not supported"},
    {"adapter_id", R"({"type": "null"})", "not supported"},
    {"best_of", R"({"type": "integer", "minimum": 1, "maximum": 1})", ""},
};

// Fields that change the answer and are not there, but for the values that ask for nothing.
absl::Status RefuseOthers(const Json& parameters) {
  for (const char* field : {"typical_p", "repetition_penalty"}) {
    HIPPODROME_ASSIGN_OR_RETURN(const auto value, NumberField(parameters, field));
    if (value.value_or(1) != 1) return Unsupported(field);
  }
  HIPPODROME_ASSIGN_OR_RETURN(const auto penalty, NumberField(parameters, "frequency_penalty"));
  if (penalty.value_or(0) != 0) return Unsupported("frequency_penalty");
  for (const char* field : {"watermark", "decoder_input_details"}) {
    HIPPODROME_ASSIGN_OR_RETURN(const auto wanted, BoolField(parameters, field));
    if (wanted.value_or(false)) return Unsupported(field);
  }
  HIPPODROME_ASSIGN_OR_RETURN(const auto best_of, IntegerField(parameters, "best_of"));
  if (best_of.value_or(1) != 1) return FieldError("best_of", "this server supports 1 alone");
  for (const char* field : {"grammar", "adapter_id", "top_n_tokens"}) {
    if (Find(parameters, field) != nullptr) return Unsupported(field);
  }
  return absl::OkStatus();
}

absl::Status ReadTgiSampling(const Json& parameters, TgiCall& call) {
  v1::GenerateRequest& request = call.request;
  HIPPODROME_ASSIGN_OR_RETURN(const auto do_sample, BoolField(parameters, "do_sample"));
  HIPPODROME_ASSIGN_OR_RETURN(const auto temperature, NumberField(parameters, "temperature"));
  HIPPODROME_ASSIGN_OR_RETURN(const auto top_k, IntegerField(parameters, "top_k"));
  HIPPODROME_ASSIGN_OR_RETURN(const auto top_p, NumberField(parameters, "top_p"));
  HIPPODROME_ASSIGN_OR_RETURN(const auto seed, SeedField(parameters, "seed"));
  if (temperature) request.set_temperature(static_cast<float>(*temperature));
  if (top_k) request.set_top_k(*top_k);
  if (top_p) request.set_top_p(static_cast<float>(*top_p));
  if (seed) request.set_seed(*seed);
  call.sampled = do_sample.value_or(false) || temperature || top_k || top_p;
  if (!call.sampled) request.set_temperature(0);
  return absl::OkStatus();
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

absl::Status ReadParameters(const Json& parameters, TgiCall& call) {
  HIPPODROME_RETURN_IF_ERROR(RefuseUnknown(parameters, kTgiParameters));
  HIPPODROME_RETURN_IF_ERROR(RefuseOthers(parameters));
  HIPPODROME_RETURN_IF_ERROR(ReadTgiSampling(parameters, call));
  HIPPODROME_RETURN_IF_ERROR(ReadTgiStop(parameters, call.request));
  HIPPODROME_ASSIGN_OR_RETURN(const auto tokens, IntegerField(parameters, "max_new_tokens"));
  call.request.set_max_tokens(tokens.value_or(kDefaultNewTokens));
  if (tokens && *tokens < 1) return FieldError("max_new_tokens", "expected at least 1");
  HIPPODROME_ASSIGN_OR_RETURN(call.truncate, IntegerField(parameters, "truncate"));
  if (call.truncate && *call.truncate < 1) return FieldError("truncate", "expected at least 1");
  HIPPODROME_ASSIGN_OR_RETURN(const auto full, BoolField(parameters, "return_full_text"));
  call.full_text = full.value_or(false);
  HIPPODROME_ASSIGN_OR_RETURN(const auto details, BoolField(parameters, "details"));
  call.details = details.value_or(false);
  return absl::OkStatus();
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
  return {{"id", token.id}, {"text", token.text}, {"special", token.special}};
}

// What streams say in the end, and whole answers begin with.
TgiJson Details(const TgiCall& call, const TgiResult& result) {
  return {{"finish_reason", FinishName(result.finish)},
          {"generated_tokens", result.tokens.size()},
          {"seed", call.sampled ? TgiJson(call.request.seed()) : TgiJson(nullptr)}};
}

std::string GeneratedText(const TgiCall& call, const TgiResult& result) {
  return call.full_text ? call.inputs + result.text : result.text;
}

std::string DumpTgi(const TgiJson& json) {
  return json.dump(-1, ' ', false, TgiJson::error_handler_t::replace);
}

}  // namespace

const RequestFields kTgiFields = kFields;
const RequestFields kTgiParameters = kParameters;

absl::StatusOr<TgiCall> ParseTgi(const std::string& body) {
  HIPPODROME_ASSIGN_OR_RETURN(const Json json, ParseObject(body));
  HIPPODROME_RETURN_IF_ERROR(RefuseUnknown(json, kTgiFields));
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

std::string TgiBody(const TgiCall& call, const TgiResult& result, bool listed) {
  TgiJson answer = {{"generated_text", GeneratedText(call, result)}};
  if (call.details) {
    TgiJson details = Details(call, result);
    details["prefill"] = TgiJson::array();
    details["tokens"] = TgiJson::array();
    for (const TgiToken& token : result.tokens) details["tokens"].push_back(TokenJson(token));
    answer["details"] = std::move(details);
  }
  return DumpTgi(listed ? TgiJson::array({std::move(answer)}) : answer);
}

std::string TgiEvent(const TgiCall& call, int64_t index, const TgiToken& token,
                     const TgiResult* result) {
  TgiJson event = {{"index", index}, {"token", TokenJson(token)}};
  event["generated_text"] =
      result == nullptr ? TgiJson(nullptr) : TgiJson(GeneratedText(call, *result));
  event["details"] = result == nullptr || !call.details ? TgiJson(nullptr) : Details(call, *result);
  return DumpTgi(event);
}

}  // namespace hippodrome
