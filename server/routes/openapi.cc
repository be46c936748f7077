#include "server/routes/openapi.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "server/json/batch_json.h"
#include "server/json/json_encoding_requests.h"
#include "server/json/json_requests.h"
#include "server/json/kserve_json.h"
#include "server/json/repository_json.h"
#include "server/json/state_json.h"
#include "server/json/tei_json.h"
#include "server/json/tgi_json.h"
#include "server/version.h"

namespace hippodrome {
namespace {

using ApiJson = nlohmann::ordered_json;

// Whole numbers stand there as such.
ApiJson NumberJson(double value) {
  return value == std::floor(value) ? ApiJson(static_cast<int64_t>(value)) : ApiJson(value);
}

ApiJson RangeSchema(const ParameterRange& range) {
  ApiJson schema = {{"type", range.whole ? "integer" : "number"}};
  schema[range.without_least ? "exclusiveMinimum" : "minimum"] = NumberJson(range.least);
  schema["maximum"] = NumberJson(range.most);
  if (range.usual) schema["default"] = NumberJson(*range.usual);
  return schema;
}

ApiJson FieldSchema(const RequestField& field) {
  ApiJson schema =
      field.range == nullptr ? ApiJson::parse(field.schema) : RangeSchema(*field.range);
  if (*field.about != '\0') schema["description"] = field.about;
  return schema;
}

ApiJson Schema(RequestFields fields) {
  ApiJson properties = ApiJson::object();
  ApiJson required = ApiJson::array();
  for (const RequestField& field : fields) {
    properties[field.name] = FieldSchema(field);
    if (field.required) required.push_back(field.name);
  }
  for (const std::string_view name : IgnoredFields()) {
    properties.emplace(std::string(name), ApiJson{{"description", "ignored"}});
  }
  ApiJson schema = {
      {"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}};
  if (!required.empty()) schema["required"] = std::move(required);
  return schema;
}

ApiJson BodySchema(const std::string& pattern) {
  if (pattern == "/tokenize") {
    return {{"oneOf", ApiJson::array({Schema(kTokenizeFields), Schema(kTeiTokenizeFields)})}};
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

// Of routes that take an API key.
constexpr std::pair<const char*, const char*> kKeyErrors[] = {
    {"401", "no API key, or none that is valid"},
    {"403", "the API key may not do this"},
    {"429", "a limit of the API key, or too much to do: try again after Retry-After seconds"}};

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

ApiJson FileContent() {
  return {{"application/octet-stream", {{"schema", {{"type", "string"}, {"format", "binary"}}}}}};
}

// What a list takes behind '?', beside "limit" and "after".
ApiJson ListParameters(std::string_view pattern) {
  ApiJson parameters = ApiJson::array();
  const auto add = [&](const char* name, ApiJson schema) {
    parameters.push_back({{"name", name}, {"in", "query"}, {"schema", std::move(schema)}});
  };
  add("limit", {{"type", "integer"}, {"minimum", 1}});
  add("after", {{"type", "string"}});
  add("order", {{"type", "string"}, {"enum", {"asc", "desc"}}, {"default", "desc"}});
  if (pattern == "/v1/files") add("purpose", {{"type", "string"}});
  return parameters;
}

ApiJson FormBody() {
  const ApiJson schema = ApiJson::parse(R"({"type": "object", "required": ["file", "purpose"],
      "properties": {"file": {"type": "string", "format": "binary"},
                     "purpose": {"type": "string", "enum": ["batch"]}}})");
  return {{"required", true}, {"content", {{"multipart/form-data", {{"schema", schema}}}}}};
}

ApiJson PostBody(const std::string& pattern) {
  if (pattern == "/v1/files") return FormBody();
  return {{"required", true},
          {"content", {{"application/json", {{"schema", BodySchema(pattern)}}}}}};
}

ApiJson Operation(const HttpRoute& route) {
  ApiJson operation = ApiJson::object();
  ApiJson parameters = PathParameters(route.pattern);
  if (!parameters.empty()) operation["parameters"] = std::move(parameters);
  if (route.method == std::string_view("PUT")) {
    operation["parameters"].push_back({{"name", "state_ttl"},
                                       {"in", "query"},
                                       {"description",
                                        "seconds that the handle lives; the server's limit by "
                                        "default, and at most"},
                                       {"schema", {{"type", "integer"}, {"minimum", 1}}}});
    operation["requestBody"] = {{"required", true}, {"content", FileContent()}};
  }
  const std::string_view pattern = route.pattern;
  if (route.method == std::string_view("POST") && !pattern.ends_with("/cancel")) {
    operation["requestBody"] = PostBody(route.pattern);
  }
  if (route.method == std::string_view("GET") &&
      (pattern == "/v1/files" || pattern == "/v1/batches")) {
    operation["parameters"] = ListParameters(pattern);
  }
  const ApiJson error = {
      {"description", "what is wrong"},
      {"content", {{"application/json", {{"schema", {{"$ref", ErrorSchema(route.errors)}}}}}}}};
  ApiJson answer = {{"description", "the answer"}};
  if (route.pattern == std::string_view("/") && route.method == std::string_view("GET")) {
    answer = {{"description", "a page where people try the models"},
              {"content", {{"text/html", {{"schema", {{"type", "string"}}}}}}}};
  }
  if (route.pattern == std::string_view("/v1/states/{handle}") &&
      route.method == std::string_view("GET")) {
    answer = {{"description", "a file of safetensors"}, {"content", FileContent()}};
  }
  if (pattern.ends_with("/content")) answer["content"] = FileContent();
  operation["responses"] = {{"200", std::move(answer)}, {"4XX", error}, {"5XX", error}};
  if (route.access == Access::kOpen) {
    operation["security"] = ApiJson::array();
  } else {
    for (const auto& [status, about] : kKeyErrors) {
      operation["responses"][status] = error;
      operation["responses"][status]["description"] = about;
    }
  }
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
  if (pattern == "/v1/completions") return kCompletionFields;
  if (pattern == "/v1/embeddings") return kEmbeddingsFields;
  if (pattern == "/predict") return kPredictFields;
  if (pattern == "/embed") return kEmbedFields;
  if (pattern == "/embed_all") return kEmbedAllFields;
  if (pattern == "/fill_mask") return kFillMaskFields;
  if (pattern == "/token_classification") return kTokenClassificationFields;
  if (pattern == "/question_answering") return kQuestionAnsweringFields;
  if (pattern == "/rerank") return kRerankFields;
  if (pattern == "/similarity") return kSimilarityFields;
  if (pattern == "/decode") return kTeiDecodeFields;
  if (pattern == "/detokenize") return kDetokenizeFields;
  if (pattern == "/v1/states/{handle}/fork") return kForkFields;
  if (pattern == "/v1/batches") return kBatchFields;
  if (pattern == "/" || pattern == "/generate" || pattern == "/generate_stream") return kTgiFields;
  if (pattern == "/v2/repository/index") return kRepositoryIndexFields;
  if (pattern.ends_with("/load")) return kModelLoadFields;
  if (pattern.ends_with("/unload")) return kModelUnloadFields;
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
  const ApiJson document = {
      {"openapi", "3.1.0"},
      {"info", {{"title", "Hippodrome"}, {"version", Version()}}},
      // Servers without keys ask for none.
      {"security", {{{"apiKey", ApiJson::array()}}, ApiJson::object()}},
      {"paths", std::move(paths)},
      {"components",
       {{"schemas", std::move(schemas)},
        {"securitySchemes", {{"apiKey", {{"type", "http"}, {"scheme", "bearer"}}}}}}}};
  return document.dump();
}

}  // namespace hippodrome
