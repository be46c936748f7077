#include "server/json/json_encoding_requests.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "engine/base/field_error.h"
#include "engine/base/status.h"

namespace hippodrome {
namespace {

using EncodingInputs = google::protobuf::RepeatedPtrField<v1::EncodingInput>;

// ---- Fields
// ---------------------------------------------------------------------------------------

constexpr RequestField kInputsParameters = {"parameters", R"({"type": "object"})",
                                            "the fields below may stand here too"};
constexpr RequestField kTruncate = {"truncate", kFlagSchema, "cut inputs that are too long"};
constexpr RequestField kDirection = {"truncation_direction", kSideSchema, "the end that is cut"};
constexpr RequestField kDimensions = {"dimensions", R"({"type": "integer"})",
                                      "must be the model's"};
constexpr RequestField kModel = {"model", kTextSchema, "the first encoder that can by default"};

constexpr RequestField kEmbeddings[] = {
    {"input", kTextsOrIdsSchema, "", true},
    kModel,
    kDimensions,
    {"encoding_format", R"({"type": "string", "enum": ["float", "base64"], "default": "float"})"},
};

constexpr RequestField kPredict[] = {
    {"inputs", R"({"oneOf": [{"type": "string"}, {"type": "array"}]})",
     "a text, a pair [\"a\", \"b\"], or a batch [[\"a\"], [\"a\", \"b\"]]", true},
    kModel,
    kInputsParameters,
    kTruncate,
    kDirection,
    {"raw_scores", kFlagSchema, "logits instead of probabilities"},
    {"top_k", R"({"type": "integer", "minimum": 1})", "all labels by default"},
    {"function_to_apply", R"({"type": "string", "enum": ["none", "softmax", "sigmoid"]})"},
};

constexpr RequestField kEmbed[] = {
    {"inputs", kTextsOrIdsSchema, "", true},
    kModel,
    kInputsParameters,
    kTruncate,
    kDirection,
    {"normalize", kTrueSchema, "to length 1"},
    kDimensions,
    {"encoding_format", R"({"type": "string", "enum": ["float"]})"},
};

constexpr RequestField kEmbedAll[] = {
    {"inputs", kTextsOrIdsSchema, "", true}, kModel, kInputsParameters, kTruncate, kDirection,
};

constexpr RequestField kFillMask[] = {
    {"inputs", kTextOrTextsSchema, "each with one [MASK] or more", true},
    kModel,
    kInputsParameters,
    kTruncate,
    kDirection,
    {"top_k", R"({"type": "integer", "minimum": 1, "default": 5})"},
    {"targets", R"({"type": "array", "items": {"type": "string"}})", "only these are scored"},
};

constexpr RequestField kTokenClassification[] = {
    {"inputs", kTextOrTextsSchema, "", true},
    kModel,
    kInputsParameters,
    kTruncate,
    kDirection,
    {"aggregation_strategy", R"({"type": "string", "default": "simple",
        "enum": ["none", "simple", "first", "average", "max"]})"},
    {"ignore_labels", R"({"type": "array", "const": ["O"]})"},
};

constexpr RequestField kQuestion[] = {{"question"}, {"context"}};

constexpr RequestField kQuestionAnswering[] = {
    {"inputs", R"({"type": "object", "required": ["question", "context"],
        "properties": {"question": {"type": "string"}, "context": {"type": "string"}}})",
     "or a list of these", true},
    kModel,
    kInputsParameters,
    {"top_k", R"({"type": "integer", "minimum": 1, "maximum": 100, "default": 1})"},
    {"doc_stride", R"({"type": "integer", "minimum": 0, "default": 128})"},
    {"max_answer_len", R"({"type": "integer", "minimum": 1, "default": 30})"},
    {"handle_impossible_answer", kFlagSchema},
    {"align_to_words", R"({"type": "boolean", "const": false})"},
};

// ---- What the bodies of all tasks have in common
// -------------------------------------------------

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

// ParseObject() of a body with no other fields than `fields`, with the members of "parameters"
// moved beside the others, where huggingface_hub sends them for some tasks.
absl::StatusOr<Json> ParseTask(const std::string& body, RequestFields fields) {
  HIPPODROME_ASSIGN_OR_RETURN(Json json, ParseObject(body));
  if (const Json* found = Find(json, "parameters"); found != nullptr) {
    if (!found->is_object()) return WrongType("parameters", "an object", *found);
    const Json parameters = *found;
    for (const auto& [name, value] : parameters.items()) {
      if (json.contains(name)) return FieldError(name, "it is there twice");
      json[name] = value;
    }
  }
  HIPPODROME_RETURN_IF_ERROR(CheckFields(json, fields));
  return json;
}

// The member `field`, which must be there.
absl::StatusOr<const Json*> RequiredField(const Json& body, const char* field) {
  const Json* value = Find(body, field);
  if (value == nullptr) return FieldError(field, "it is missing");
  return value;
}

// These append what they read to `inputs`; true if it was a batch, false if a single input.
// "a" or ["a", "b", ...].
absl::StatusOr<bool> ReadTexts(const Json& body, EncodingInputs& inputs) {
  HIPPODROME_ASSIGN_OR_RETURN(const Json* value, RequiredField(body, "inputs"));
  if (!value->is_array()) {
    HIPPODROME_RETURN_IF_ERROR(ReadText(*value, inputs));
    return false;
  }
  for (const Json& text : *value) HIPPODROME_RETURN_IF_ERROR(ReadText(text, inputs));
  return true;
}

// "a", the pair ["a", "b"], or the batch [["a"], ["a", "b"], ...], as TEI takes them.
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

// The member `field`, "a", [1, 2], or an array of those, appended to `inputs`.
absl::Status ReadTextsOrIds(const Json& body, const char* field, EncodingInputs& inputs) {
  HIPPODROME_ASSIGN_OR_RETURN(const Json* value, RequiredField(body, field));
  const bool ids = value->is_array() && !value->empty() && value->front().is_number();
  if (ids || !value->is_array()) return ReadTextOrIds(*value, field, inputs);
  for (const Json& input : *value) {
    HIPPODROME_RETURN_IF_ERROR(ReadTextOrIds(input, field, inputs));
  }
  return absl::OkStatus();
}

// ---- What is of one task
// -------------------------------------------------------------------------

absl::Status ReadFunction(const Json& json, PredictCall& call) {
  HIPPODROME_ASSIGN_OR_RETURN(const auto function, TextField(json, "function_to_apply"));
  if (!function) return absl::OkStatus();
  if (*function == "softmax") {
    call.function = PredictCall::Function::kSoftmax;
  } else if (*function == "sigmoid") {
    call.function = PredictCall::Function::kSigmoid;
  } else if (*function != "none") {
    return FieldError("function_to_apply", "expected \"none\", \"softmax\" or \"sigmoid\"");
  }
  call.request.set_raw_scores(true);
  return absl::OkStatus();
}

absl::Status ReadEmbedding(const Json& json, const char* inputs, EmbedCall& call) {
  HIPPODROME_ASSIGN_OR_RETURN(*call.request.mutable_model(), ModelField(json));
  HIPPODROME_ASSIGN_OR_RETURN(call.dimensions, IntegerField(json, "dimensions"));
  HIPPODROME_ASSIGN_OR_RETURN(const auto format, TextField(json, "encoding_format"));
  call.base64 = format == "base64";
  if (format && !call.base64 && *format != "float") {
    return FieldError("encoding_format", "expected \"float\" or \"base64\"");
  }
  return ReadTextsOrIds(json, inputs, *call.request.mutable_inputs());
}

absl::Status ReadTargets(const Json& json, v1::FillMaskRequest& request) {
  const Json* targets = Find(json, "targets");
  if (targets == nullptr) return absl::OkStatus();
  if (!targets->is_array()) return WrongType("targets", "an array of strings", *targets);
  for (const Json& target : *targets) {
    if (!target.is_string()) return WrongType("targets", "strings", target);
    request.add_targets(target.get<std::string>());
  }
  return absl::OkStatus();
}

absl::Status ReadAggregation(const Json& json, v1::TagTokensRequest& request) {
  HIPPODROME_ASSIGN_OR_RETURN(const auto strategy, TextField(json, "aggregation_strategy"));
  if (!strategy) return absl::OkStatus();
  for (const auto& [name, aggregation] :
       {std::pair("none", v1::AGGREGATION_NONE), std::pair("simple", v1::AGGREGATION_SIMPLE),
        std::pair("first", v1::AGGREGATION_FIRST), std::pair("average", v1::AGGREGATION_AVERAGE),
        std::pair("max", v1::AGGREGATION_MAX)}) {
    if (*strategy != name) continue;
    request.set_aggregation(aggregation);
    return absl::OkStatus();
  }
  return FieldError("aggregation_strategy",
                    "expected \"none\", \"simple\", \"first\", \"average\" or \"max\"");
}

// {"question": "a", "context": "b"}
absl::Status ReadQuestion(const Json& value, v1::AnswerQuestionRequest& request) {
  if (!value.is_object()) {
    return WrongType("inputs", "an object with \"question\" and \"context\"", value);
  }
  HIPPODROME_RETURN_IF_ERROR(CheckFields(value, kQuestion));
  v1::AnswerQuestionRequest::Question& question = *request.add_questions();
  HIPPODROME_ASSIGN_OR_RETURN(auto text, TextField(value, "question"));
  if (!text) return FieldError("question", "it is missing");
  question.set_question(*std::move(text));
  HIPPODROME_ASSIGN_OR_RETURN(auto context, TextField(value, "context"));
  if (!context) return FieldError("context", "it is missing");
  question.set_context(*std::move(context));
  return absl::OkStatus();
}

absl::Status ReadAnswerParameters(const Json& json, v1::AnswerQuestionRequest& request) {
  HIPPODROME_ASSIGN_OR_RETURN(const auto align, BoolField(json, "align_to_words"));
  if (align.value_or(false)) return Unsupported("align_to_words");
  HIPPODROME_ASSIGN_OR_RETURN(const auto top_k, IntegerField(json, "top_k"));
  if (top_k) request.set_top_k(*top_k);
  HIPPODROME_ASSIGN_OR_RETURN(const auto stride, IntegerField(json, "doc_stride"));
  if (stride) request.set_stride(*stride);
  HIPPODROME_ASSIGN_OR_RETURN(const auto longest, IntegerField(json, "max_answer_len"));
  if (longest) request.set_max_answer_tokens(*longest);
  HIPPODROME_ASSIGN_OR_RETURN(const auto impossible, BoolField(json, "handle_impossible_answer"));
  request.set_allow_no_answer(impossible.value_or(false));
  return absl::OkStatus();
}

}  // namespace

const RequestFields kPredictFields = kPredict;
const RequestFields kEmbedFields = kEmbed;
const RequestFields kEmbedAllFields = kEmbedAll;
const RequestFields kEmbeddingsFields = kEmbeddings;
const RequestFields kFillMaskFields = kFillMask;
const RequestFields kTokenClassificationFields = kTokenClassification;
const RequestFields kQuestionAnsweringFields = kQuestionAnswering;

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

absl::StatusOr<PredictCall> ParsePredict(const std::string& body) {
  HIPPODROME_ASSIGN_OR_RETURN(const Json json, ParseTask(body, kPredict));
  PredictCall call;
  HIPPODROME_ASSIGN_OR_RETURN(*call.request.mutable_model(), ModelField(json));
  HIPPODROME_RETURN_IF_ERROR(ReadTruncation(json, *call.request.mutable_truncate()));
  HIPPODROME_ASSIGN_OR_RETURN(const auto raw_scores, BoolField(json, "raw_scores"));
  call.request.set_raw_scores(raw_scores.value_or(false));
  HIPPODROME_RETURN_IF_ERROR(ReadFunction(json, call));
  HIPPODROME_ASSIGN_OR_RETURN(call.top_k, IntegerField(json, "top_k"));
  if (call.top_k && *call.top_k < 1) return FieldError("top_k", "expected at least 1");
  HIPPODROME_ASSIGN_OR_RETURN(const bool batch,
                              ReadTextsOrPairs(json, *call.request.mutable_inputs()));
  call.nested = batch || Find(json, "parameters") != nullptr;
  return call;
}

absl::StatusOr<EmbedCall> ParseEmbed(const std::string& body) {
  HIPPODROME_ASSIGN_OR_RETURN(const Json json, ParseTask(body, kEmbed));
  EmbedCall call;
  HIPPODROME_RETURN_IF_ERROR(ReadEmbedding(json, "inputs", call));
  if (call.base64) return FieldError("encoding_format", "expected \"float\" on this path");
  HIPPODROME_RETURN_IF_ERROR(ReadTruncation(json, *call.request.mutable_truncate()));
  HIPPODROME_ASSIGN_OR_RETURN(const auto normalize, BoolField(json, "normalize"));
  if (normalize) call.request.set_normalize(*normalize);
  return call;
}

absl::StatusOr<EmbedCall> ParseEmbedAll(const std::string& body) {
  HIPPODROME_ASSIGN_OR_RETURN(const Json json, ParseTask(body, kEmbedAll));
  EmbedCall call;
  HIPPODROME_RETURN_IF_ERROR(ReadEmbedding(json, "inputs", call));
  HIPPODROME_RETURN_IF_ERROR(ReadTruncation(json, *call.request.mutable_truncate()));
  call.request.set_per_token(true);
  call.request.set_normalize(false);
  return call;
}

absl::StatusOr<EmbedCall> ParseEmbeddings(const std::string& body) {
  HIPPODROME_ASSIGN_OR_RETURN(const Json json, ParseObject(body));
  HIPPODROME_RETURN_IF_ERROR(CheckFields(json, kEmbeddings));
  EmbedCall call;
  HIPPODROME_RETURN_IF_ERROR(ReadEmbedding(json, "input", call));
  return call;
}

absl::StatusOr<FillMaskCall> ParseFillMask(const std::string& body) {
  HIPPODROME_ASSIGN_OR_RETURN(const Json json, ParseTask(body, kFillMask));
  FillMaskCall call;
  HIPPODROME_ASSIGN_OR_RETURN(*call.request.mutable_model(), ModelField(json));
  HIPPODROME_RETURN_IF_ERROR(ReadTruncation(json, *call.request.mutable_truncate()));
  HIPPODROME_ASSIGN_OR_RETURN(const auto top_k, IntegerField(json, "top_k"));
  if (top_k) call.request.set_top_k(*top_k);
  HIPPODROME_RETURN_IF_ERROR(ReadTargets(json, call.request));
  HIPPODROME_RETURN_IF_ERROR(ReadTexts(json, *call.request.mutable_inputs()).status());
  call.batch = call.request.inputs_size() > 1;
  return call;
}

absl::StatusOr<TokenClassificationCall> ParseTokenClassification(const std::string& body) {
  HIPPODROME_ASSIGN_OR_RETURN(const Json json, ParseTask(body, kTokenClassification));
  const Json* ignored = Find(json, "ignore_labels");
  if (ignored != nullptr && *ignored != Json::array({"O"})) return Unsupported("ignore_labels");
  TokenClassificationCall call;
  HIPPODROME_ASSIGN_OR_RETURN(*call.request.mutable_model(), ModelField(json));
  HIPPODROME_RETURN_IF_ERROR(ReadTruncation(json, *call.request.mutable_truncate()));
  HIPPODROME_RETURN_IF_ERROR(ReadAggregation(json, call.request));
  HIPPODROME_ASSIGN_OR_RETURN(call.batch, ReadTexts(json, *call.request.mutable_inputs()));
  return call;
}

absl::StatusOr<QuestionAnsweringCall> ParseQuestionAnswering(const std::string& body) {
  HIPPODROME_ASSIGN_OR_RETURN(const Json json, ParseTask(body, kQuestionAnswering));
  QuestionAnsweringCall call;
  HIPPODROME_ASSIGN_OR_RETURN(*call.request.mutable_model(), ModelField(json));
  HIPPODROME_RETURN_IF_ERROR(ReadAnswerParameters(json, call.request));
  HIPPODROME_ASSIGN_OR_RETURN(const Json* inputs, RequiredField(json, "inputs"));
  if (!inputs->is_array()) {
    HIPPODROME_RETURN_IF_ERROR(ReadQuestion(*inputs, call.request));
  } else {
    for (const Json& input : *inputs) {
      HIPPODROME_RETURN_IF_ERROR(ReadQuestion(input, call.request));
    }
  }
  call.batch = call.request.questions_size() > 1;
  return call;
}

}  // namespace hippodrome
