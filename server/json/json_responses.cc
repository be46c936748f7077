#include "server/json/json_responses.h"

#include <nlohmann/json.hpp>

#include "engine/base/field_error.h"
#include "engine/base/status.h"

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
    case StreamFinish::kStop:
      return "stop";
    case StreamFinish::kLength:
      return "length";
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

OrderedJson Choice(int64_t index, const StreamUpdate& update) {
  return {{"index", index},
          {"text", update.text},
          {"token_ids", update.token_ids},
          {"logprobs", nullptr},
          {"finish_reason", FinishJson(update.finish)}};
}

OrderedJson UsageJson(std::span<const StreamUpdate> choices) {
  int64_t prompt = 0;
  int64_t completion = 0;
  for (const StreamUpdate& choice : choices) {
    prompt += choice.prompt_tokens;
    completion += choice.completion_tokens;
  }
  return {{"prompt_tokens", prompt},
          {"completion_tokens", completion},
          {"total_tokens", prompt + completion}};
}

OrderedJson ModelJson(const v1::Model& model) {
  return {{"id", model.name()},
          {"object", "model"},
          {"created", model.created()},
          {"owned_by", "hippodrome"}};
}

std::string Error(const std::string& message, const char* type, const std::string& code,
                  const std::string& param) {
  const OrderedJson error = {{"message", message},
                             {"type", type},
                             {"code", code},
                             {"param", param.empty() ? OrderedJson(nullptr) : OrderedJson(param)}};
  return DumpOrdered({{"error", error}});
}

}  // namespace

std::string CompletionBody(const CompletionHead& head, std::span<const StreamUpdate> choices) {
  OrderedJson json = Completion(head);
  for (size_t i = 0; i < choices.size(); ++i) {
    json["choices"].push_back(Choice(static_cast<int64_t>(i), choices[i]));
  }
  json["usage"] = UsageJson(choices);
  return DumpOrdered(json);
}

std::string CompletionEvent(const CompletionHead& head, int64_t index, const StreamUpdate& update) {
  OrderedJson json = Completion(head);
  json["choices"].push_back(Choice(index, update));
  return DumpOrdered(json);
}

std::string UsageEvent(const CompletionHead& head, std::span<const StreamUpdate> choices) {
  OrderedJson json = Completion(head);
  json["usage"] = UsageJson(choices);
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
  OrderedJson json = {{"tokens", response.token_ids()}, {"count", response.token_ids_size()}};
  if (model.max_positions() > 0) json["max_model_len"] = model.max_positions();
  return DumpOrdered(json);
}

std::string DetokenizeBody(const v1::DetokenizeResponse& response) {
  return TextBody("prompt", response.text());
}

std::string TextBody(const std::string& name, const std::string& value) {
  return DumpOrdered({{name, value}});
}

}  // namespace hippodrome
