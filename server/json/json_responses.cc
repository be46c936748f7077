#include "server/json/json_responses.h"

#include <nlohmann/json.hpp>

#include "engine/base/field_error.h"
#include "engine/base/status.h"
#include "server/json/state_json.h"

namespace hippodrome {
namespace {

// Keeps the order in which fields are written.
using OrderedJson = nlohmann::ordered_json;

// Messages may quote what a client sent, so invalid UTF-8 is replaced rather than thrown on.
std::string DumpOrdered(const OrderedJson& json) {
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

OrderedJson FinishJson(StreamFinish finish) {
  switch (finish) {
    case StreamFinish::kStopString:
    case StreamFinish::kEndOfText:
      return "stop";
    case StreamFinish::kLength:
      return "length";
    case StreamFinish::kMigrated:
      return "migrated";
    default:
      return nullptr;
  }
}

OrderedJson Completion(const CompletionHead& head) {
  return {{"id", head.id},
          {"object", "text_completion"},
          {"created", head.created},
          {"model", head.model},
          {"choices", OrderedJson::array()}};
}

OrderedJson Choice(const CompletionChoice& choice) {
  return {{"index", choice.index},
          {"text", choice.text},
          {"token_ids", choice.token_ids},
          {"logprobs", choice.log_probabilities},
          {"finish_reason", FinishJson(choice.finish)}};
}

OrderedJson UsageJson(const v1::Usage& usage) {
  OrderedJson json = {{"prompt_tokens", usage.prompt_tokens()},
                      {"completion_tokens", usage.completion_tokens()},
                      {"total_tokens", usage.prompt_tokens() + usage.completion_tokens()}};
  if (!usage.has_prompt_tokens_details()) return json;
  const int64_t cached = usage.prompt_tokens_details().cached_tokens();
  json["prompt_tokens_details"] = {{"cached_tokens", cached}};
  return json;
}

// Null where there is none.
OrderedJson TextOrNull(const std::string& text) {
  return text.empty() ? OrderedJson(nullptr) : OrderedJson(text);
}

OrderedJson PositiveOrNull(int64_t number) {
  return number > 0 ? OrderedJson(number) : OrderedJson(nullptr);
}

// What OpenAI's have, vLLM's max_model_len, and what tells which tasks the model can do.
OrderedJson ModelJson(const v1::Model& model) {
  OrderedJson json = {{"id", model.name()},
                      {"object", "model"},
                      {"created", model.created()},
                      {"owned_by", "hippodrome"},
                      {"max_model_len", PositiveOrNull(model.max_positions())},
                      {"architecture", model.architecture()}};
  if (!model.head().empty()) json["head"] = model.head();
  if (model.attention_window() > 0) json["attention_window"] = model.attention_window();
  return json;
}

std::string Error(const std::string& message, const char* type, const std::string& code,
                  const std::string& param) {
  const OrderedJson error = {
      {"message", message}, {"type", type}, {"code", code}, {"param", TextOrNull(param)}};
  return DumpOrdered({{"error", error}});
}

}  // namespace

std::string CompletionBody(const CompletionHead& head, std::span<const CompletionChoice> choices,
                           const v1::Usage& usage, const v1::State* state) {
  OrderedJson json = Completion(head);
  for (const CompletionChoice& choice : choices) json["choices"].push_back(Choice(choice));
  json["usage"] = UsageJson(usage);
  if (state != nullptr) json["state"] = StateJson(*state);
  return DumpOrdered(json);
}

std::string CompletionEvent(const CompletionHead& head, const CompletionChoice& choice,
                            bool null_usage, const v1::State* state) {
  OrderedJson json = Completion(head);
  json["choices"].push_back(Choice(choice));
  if (null_usage) json["usage"] = nullptr;
  if (state != nullptr) json["state"] = StateJson(*state);
  return DumpOrdered(json);
}

std::string UsageEvent(const CompletionHead& head, const v1::Usage& usage) {
  OrderedJson json = Completion(head);
  json["usage"] = UsageJson(usage);
  return DumpOrdered(json);
}

std::string ErrorBody(const absl::Status& status, ErrorShape shape) {
  if (shape == ErrorShape::kTgi) {
    return DumpOrdered(
        {{"error", Message(status)}, {"error_type", TgiErrorType(HttpStatus(status))}});
  }
  if (shape == ErrorShape::kKServe) return TextBody("error", Message(status));
  return Error(Message(status), ErrorType(HttpStatus(status)), ErrorCode(status), Field(status));
}

std::string ErrorBody(int http_status, const std::string& code, const std::string& message) {
  return Error(message, ErrorType(http_status), code, "");
}

std::string ModelsBody(const v1::ListModelsResponse& models) {
  OrderedJson data = OrderedJson::array();
  for (const v1::Model& model : models.models()) {
    data.push_back(ModelJson(model));
  }
  return DumpOrdered({{"object", "list"}, {"data", data}});
}

std::string ModelBody(const v1::Model& model) { return DumpOrdered(ModelJson(model)); }

std::string TokenizeBody(const v1::TokenizeResponse& response, const v1::Model& model) {
  return DumpOrdered({{"tokens", response.token_ids()},
                      {"count", response.token_ids_size()},
                      {"max_model_len", PositiveOrNull(model.max_positions())}});
}

std::string TokenizerInfoBody(const TokenizerInfo& tokenizer) {
  const int32_t eos = tokenizer.eos_token_id;
  return DumpOrdered({{"eos_token", TextOrNull(tokenizer.eos_token)},
                      {"bos_token", TextOrNull(tokenizer.bos_token)},
                      {"pad_token", TextOrNull(tokenizer.pad_token)},
                      {"chat_template", nullptr},
                      {"eos_token_id", eos >= 0 ? OrderedJson(eos) : OrderedJson(nullptr)},
                      {"vocab_size", tokenizer.vocab_size},
                      {"model_max_length", PositiveOrNull(tokenizer.max_tokens)}});
}

std::string DetokenizeBody(const v1::DetokenizeResponse& response) {
  return TextBody("prompt", response.text());
}

std::string TextBody(const std::string& name, const std::string& value) {
  return DumpOrdered({{name, value}});
}

}  // namespace hippodrome
