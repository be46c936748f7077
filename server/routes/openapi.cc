#include "server/routes/openapi.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "absl/strings/ascii.h"
#include "server/json/kserve_json.h"
#include "server/json/tei_json.h"
#include "server/json/tgi_json.h"
#include "server/version.h"

namespace hippodrome {
namespace {

using ApiJson = nlohmann::ordered_json;

// Of bodies whose parsers name their fields one by one.
constexpr char kFlag[] = R"({"type": "boolean", "default": false})";
constexpr char kName[] = R"({"type": "string"})";
constexpr char kSide[] =
    R"({"type": "string", "enum": ["Left", "Right", "left", "right"], "default": "Right"})";
constexpr char kIds[] = R"({"type": "array", "items": {"type": "integer", "minimum": 0}})";
constexpr char kPenalty[] = R"({"type": "number", "minimum": -2, "maximum": 2, "default": 0})";
constexpr char kTextOrTexts[] =
    R"({"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]})";
constexpr char kTextsOrIds[] = R"({"oneOf": [{"type": "string"},
    {"type": "array", "items": {"oneOf": [{"type": "string"}, {"type": "integer"},
      {"type": "array", "items": {"type": "integer"}}]}}]})";

constexpr RequestField kCompletion[] = {
    {"prompt", kTextsOrIds, "a text, token ids, or a list of either", true},
    {"model", kName, "a decoder of /v1/models; the first one by default"},
    {"max_tokens", R"({"type": "integer", "minimum": 0, "default": 16})", ""},
    {"temperature", R"({"type": "number", "minimum": 0, "maximum": 100, "default": 1})", ""},
    {"top_p", R"({"type": "number", "exclusiveMinimum": 0, "maximum": 1, "default": 1})", ""},
    {"top_k", R"({"type": "integer", "minimum": 0, "maximum": 1073741824, "default": 0})", ""},
    {"min_p", R"({"type": "number", "minimum": 0, "maximum": 1, "default": 0})", ""},
    {"seed", R"({"type": "integer"})", "drawn at random by default"},
    {"stop", kTextOrTexts, "the text ends before the first of these"},
    {"stream", kFlag, ""},
    {"stream_options", R"({"type": "object",
        "properties": {"include_usage": {"type": "boolean", "default": false}}})",
     ""},
    {"presence_penalty", kPenalty, ""},
    {"frequency_penalty", kPenalty, ""},
    {"n", R"({"type": "integer", "minimum": 1, "default": 1})", "answers to each prompt"},
    {"echo", kFlag, "the prompt stands before its answers"},
    {"ignore_eos", kFlag, ""},
};

constexpr RequestField kEmbeddings[] = {
    {"input", kTextsOrIds, "", true},
    {"model", kName, ""},
    {"dimensions", R"({"type": "integer"})", "must be the model's"},
    {"encoding_format", R"({"type": "string", "enum": ["float", "base64"], "default": "float"})",
     ""},
};

constexpr RequestField kPredict[] = {
    {"inputs", R"({"oneOf": [{"type": "string"}, {"type": "array"}]})",
     "a text, a pair [\"a\", \"b\"], or a batch [[\"a\"], [\"a\", \"b\"]]", true},
    {"model", kName, ""},
    {"parameters", R"({"type": "object"})", "the fields below may stand here too"},
    {"truncate", kFlag, ""},
    {"truncation_direction", kSide, ""},
    {"raw_scores", kFlag, ""},
    {"top_k", R"({"type": "integer", "minimum": 1})", "all labels by default"},
    {"function_to_apply", R"({"type": "string", "enum": ["none", "softmax", "sigmoid"]})", ""},
};

constexpr RequestField kEmbed[] = {
    {"inputs", kTextsOrIds, "", true},
    {"model", kName, ""},
    {"parameters", R"({"type": "object"})", "the fields below may stand here too"},
    {"truncate", kFlag, ""},
    {"truncation_direction", kSide, ""},
    {"normalize", R"({"type": "boolean", "default": true})", ""},
    {"dimensions", R"({"type": "integer"})", "must be the model's"},
    {"encoding_format", R"({"type": "string", "enum": ["float"]})", ""},
};

constexpr RequestField kFillMask[] = {
    {"inputs", kTextOrTexts, "", true},
    {"model", kName, ""},
    {"parameters", R"({"type": "object"})", "the fields below may stand here too"},
    {"truncate", kFlag, ""},
    {"truncation_direction", kSide, ""},
    {"top_k", R"({"type": "integer", "minimum": 1, "default": 5})", ""},
    {"targets", R"({"type": "array", "items": {"type": "string"}})", ""},
};

constexpr RequestField kTokenClassification[] = {
    {"inputs", kTextOrTexts, "", true},
    {"model", kName, ""},
    {"parameters", R"({"type": "object"})", "the fields below may stand here too"},
    {"truncate", kFlag, ""},
    {"truncation_direction", kSide, ""},
    {"aggregation_strategy",
     R"({"type": "string", "enum": ["none", "simple", "first", "average", "max"]})", ""},
    {"ignore_labels", R"({"type": "array", "const": ["O"]})", ""},
};

constexpr char kQuestion[] = R"({"type": "object", "required": ["question", "context"],
    "properties": {"question": {"type": "string"}, "context": {"type": "string"}}})";

constexpr RequestField kQuestionAnswering[] = {
    {"inputs", kQuestion, "or a list of these", true},
    {"model", kName, ""},
    {"parameters", R"({"type": "object"})", "the fields below may stand here too"},
    {"top_k", R"({"type": "integer", "minimum": 1, "default": 1})", ""},
    {"doc_stride", R"({"type": "integer", "minimum": 0, "default": 128})", ""},
    {"max_answer_len", R"({"type": "integer", "minimum": 1, "default": 30})", ""},
    {"handle_impossible_answer", kFlag, ""},
    {"align_to_words", R"({"type": "boolean", "const": false})", ""},
};

constexpr RequestField kDetokenize[] = {{"tokens", kIds, "", true}, {"model", kName, ""}};

// vLLM's shape; TEI's is kTeiTokenizeFields.
constexpr RequestField kVllmTokenize[] = {
    {"prompt", kName, "", true},
    {"model", kName, ""},
    {"add_special_tokens", R"({"type": "boolean", "default": true})", ""}};

ApiJson Schema(RequestFields fields) {
  ApiJson properties = ApiJson::object();
  ApiJson required = ApiJson::array();
  for (const RequestField& field : fields) {
    ApiJson schema = ApiJson::parse(field.schema);
    if (*field.about != '\0') schema["description"] = field.about;
    properties[field.name] = std::move(schema);
    if (field.required) required.push_back(field.name);
  }
  ApiJson schema = {
      {"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}};
  if (!required.empty()) schema["required"] = std::move(required);
  return schema;
}

ApiJson BodySchema(const std::string& pattern) {
  if (pattern == "/tokenize") {
    return {{"oneOf", ApiJson::array({Schema(kVllmTokenize), Schema(kTeiTokenizeFields)})}};
  }
  const std::optional<RequestFields> fields = BodyFields(pattern);
  return fields ? Schema(*fields) : ApiJson{{"type", "object"}};
}

const char* ErrorSchema(ErrorShape shape) {
  switch (shape) {
    case ErrorShape::kTgi:
      return "#/components/schemas/TgiError";
    case ErrorShape::kKServe:
      return "#/components/schemas/KServeError";
    default:
      return "#/components/schemas/Error";
  }
}

ApiJson PathParameters(std::string_view pattern) {
  ApiJson parameters = ApiJson::array();
  for (size_t at = pattern.find('{'); at != std::string_view::npos;
       at = pattern.find('{', at + 1)) {
    const std::string_view name = pattern.substr(at + 1, pattern.find('}', at) - at - 1);
    parameters.push_back({{"name", std::string(name)},
                          {"in", "path"},
                          {"required", true},
                          {"schema", {{"type", "string"}}}});
  }
  return parameters;
}

ApiJson Operation(const HttpRoute& route) {
  ApiJson operation = ApiJson::object();
  ApiJson parameters = PathParameters(route.pattern);
  if (!parameters.empty()) operation["parameters"] = std::move(parameters);
  if (route.method == std::string_view("POST")) {
    operation["requestBody"] = {
        {"required", true},
        {"content", {{"application/json", {{"schema", BodySchema(route.pattern)}}}}}};
  }
  const ApiJson error = {
      {"description", "what is wrong"},
      {"content", {{"application/json", {{"schema", {{"$ref", ErrorSchema(route.errors)}}}}}}}};
  operation["responses"] = {
      {"200", {{"description", "the answer"}}}, {"4XX", error}, {"5XX", error}};
  return operation;
}

ApiJson ErrorSchemas() {
  return {{"Error", ApiJson::parse(R"({"type": "object", "properties": {"error": {
              "type": "object", "required": ["message", "type", "code"], "properties": {
              "message": {"type": "string"}, "type": {"type": "string"},
              "code": {"type": "string"}, "param": {"type": ["string", "null"]}}}}})")},
          {"TgiError", ApiJson::parse(R"({"type": "object", "properties": {
              "error": {"type": "string"},
              "error_type": {"enum": ["validation", "generation", "overloaded"]}}})")},
          {"KServeError", ApiJson::parse(R"({"type": "object", "properties": {
              "error": {"type": "string"}}})")}};
}

}  // namespace

std::optional<RequestFields> BodyFields(const std::string& pattern) {
  if (pattern == "/v1/completions") return kCompletion;
  if (pattern == "/v1/embeddings") return kEmbeddings;
  if (pattern == "/predict") return kPredict;
  if (pattern == "/embed") return kEmbed;
  if (pattern == "/fill_mask") return kFillMask;
  if (pattern == "/token_classification") return kTokenClassification;
  if (pattern == "/question_answering") return kQuestionAnswering;
  if (pattern == "/rerank") return kRerankFields;
  if (pattern == "/similarity") return kSimilarityFields;
  if (pattern == "/decode") return kTeiDecodeFields;
  if (pattern == "/detokenize") return kDetokenize;
  if (pattern == "/" || pattern == "/generate" || pattern == "/generate_stream") return kTgiFields;
  if (pattern.ends_with("/infer")) return kInferFields;
  if (pattern.ends_with("/generate") || pattern.ends_with("/generate_stream")) {
    return kKServeGenerateFields;
  }
  return std::nullopt;
}

std::string OpenApiBody(std::span<const HttpRoute> routes) {
  ApiJson paths = ApiJson::object();
  for (const HttpRoute& route : routes) {
    paths[route.pattern][absl::AsciiStrToLower(route.method)] = Operation(route);
  }
  ApiJson schemas = ErrorSchemas();
  schemas["TgiParameters"] = Schema(kTgiParameters);
  const ApiJson document = {{"openapi", "3.1.0"},
                            {"info", {{"title", "Hippodrome"}, {"version", Version()}}},
                            {"paths", std::move(paths)},
                            {"components", {{"schemas", std::move(schemas)}}}};
  return document.dump();
}

}  // namespace hippodrome
