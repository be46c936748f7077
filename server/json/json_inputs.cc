#include "server/json/json_inputs.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "engine/base/status.h"
#include "server/status_map.h"

namespace hippodrome {
namespace {

absl::Status ReadText(const Json& value, EncodingInputs& inputs) {
  if (!value.is_string()) return WrongType("inputs", "strings", value);
  inputs.Add()->set_text(value.get<std::string>());
  return absl::OkStatus();
}

// ["a"] or ["a", "b"].
absl::Status ReadTextOrPair(const Json& value, EncodingInputs& inputs) {
  if (!value.is_array()) return WrongType("inputs", "[text] or [text, text]", value);
  if (value.size() == 1) return ReadText(value[0], inputs);
  if (value.size() != 2) {
    return FieldError("inputs", "an array of " + std::to_string(value.size()) +
                                    " texts, expected a text or a pair");
  }
  for (const Json& text : value) {
    if (!text.is_string()) return WrongType("inputs", "strings", text);
  }
  v1::EncodingInput::Pair& pair = *inputs.Add()->mutable_pair();
  pair.set_first(value[0].get<std::string>());
  pair.set_second(value[1].get<std::string>());
  return absl::OkStatus();
}

absl::Status ReadTextOrIds(const Json& value, const char* field, EncodingInputs& inputs) {
  if (value.is_string()) {
    inputs.Add()->set_text(value.get<std::string>());
    return absl::OkStatus();
  }
  if (!value.is_array()) return WrongType(field, "strings or arrays of token ids", value);
  HIPPODROME_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, TokenIdArray(value, field));
  inputs.Add()->mutable_tokens()->mutable_ids()->Add(ids.begin(), ids.end());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Json> ParseTask(const std::string& body) {
  HIPPODROME_ASSIGN_OR_RETURN(Json json, ParseObject(body));
  const Json* parameters = Find(json, "parameters");
  if (parameters == nullptr) return json;
  if (!parameters->is_object()) return WrongType("parameters", "an object", *parameters);
  json.update(Json(*parameters));
  return json;
}

absl::StatusOr<const Json*> RequiredField(const Json& body, const char* field) {
  const Json* value = Find(body, field);
  if (value == nullptr) return FieldError(field, "it is missing");
  return value;
}

absl::StatusOr<bool> ReadTexts(const Json& body, EncodingInputs& inputs) {
  HIPPODROME_ASSIGN_OR_RETURN(const Json* value, RequiredField(body, "inputs"));
  if (!value->is_array()) {
    HIPPODROME_RETURN_IF_ERROR(ReadText(*value, inputs));
    return false;
  }
  for (const Json& text : *value) HIPPODROME_RETURN_IF_ERROR(ReadText(text, inputs));
  return true;
}

absl::StatusOr<bool> ReadTextsOrPairs(const Json& body, EncodingInputs& inputs) {
  HIPPODROME_ASSIGN_OR_RETURN(const Json* value, RequiredField(body, "inputs"));
  const bool batch = value->is_array() && !value->empty() && value->front().is_array();
  if (batch) {
    for (const Json& input : *value) HIPPODROME_RETURN_IF_ERROR(ReadTextOrPair(input, inputs));
  } else if (value->is_array()) {
    HIPPODROME_RETURN_IF_ERROR(ReadTextOrPair(*value, inputs));
  } else {
    HIPPODROME_RETURN_IF_ERROR(ReadText(*value, inputs));
  }
  return batch;
}

absl::Status ReadTextsOrIds(const Json& body, const char* field, EncodingInputs& inputs) {
  HIPPODROME_ASSIGN_OR_RETURN(const Json* value, RequiredField(body, field));
  const bool ids = value->is_array() && !value->empty() && value->front().is_number();
  if (ids || !value->is_array()) return ReadTextOrIds(*value, field, inputs);
  for (const Json& input : *value) {
    HIPPODROME_RETURN_IF_ERROR(ReadTextOrIds(input, field, inputs));
  }
  return absl::OkStatus();
}

absl::Status ReadTruncation(const Json& body, v1::Truncate& truncate) {
  HIPPODROME_ASSIGN_OR_RETURN(const auto enabled, BoolField(body, "truncate"));
  truncate.set_enabled(enabled.value_or(false));
  HIPPODROME_ASSIGN_OR_RETURN(auto direction, TextField(body, "truncation_direction"));
  if (!direction) return absl::OkStatus();
  absl::AsciiStrToLower(&*direction);
  if (*direction == "left") {
    truncate.set_direction(v1::TRUNCATION_DIRECTION_LEFT);
  } else if (*direction == "right") {
    truncate.set_direction(v1::TRUNCATION_DIRECTION_RIGHT);
  } else {
    return FieldError("truncation_direction", "expected \"left\" or \"right\"");
  }
  return absl::OkStatus();
}

}  // namespace hippodrome
