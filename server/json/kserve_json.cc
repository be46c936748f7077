#include "server/json/kserve_json.h"

#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/field_error.h"
#include "engine/base/status.h"
#include "server/handlers/tensor_contents.h"

namespace hippodrome {
namespace {

// Keeps the order in which fields are written, and the numbers as floats.
using KServeJson = nlohmann::basic_json<nlohmann::ordered_map, std::vector, std::string, bool,
                                        int64_t, uint64_t, float>;
using OutputTensor = inference::ModelInferResponse::InferOutputTensor;

constexpr char kParameters[] = R"({"type": "object", "additionalProperties": {
    "type": ["boolean", "integer", "number", "string"]}})";

constexpr RequestField kInfer[] = {
    {"id", R"({"type": "string"})", "comes back in the response"},
    {"inputs", R"({"type": "array", "minItems": 1, "items": {"type": "object",
        "required": ["name", "shape", "datatype"], "properties": {
        "name": {"type": "string"},
        "shape": {"type": "array", "items": {"type": "integer", "minimum": 0}},
        "datatype": {"type": "string", "enum": ["BYTES"]},
        "parameters": {"type": "object"},
        "data": {"type": "array", "description": "texts, flat or nested"}}}})",
     "", true},
    {"parameters", kParameters, "as of ModelInferRequest in open_inference.proto"},
    {"outputs", R"({"type": "array", "items": {"type": "object", "required": ["name"],
        "properties": {"name": {"type": "string"}, "parameters": {"type": "object"}}}})",
     "all of the model's head by default"},
};

constexpr RequestField kGenerate[] = {
    {"text_input", R"({"type": "string", "minLength": 1})", "the prompt", true},
    {"parameters", kParameters, "those below may stand here too"},
    {"id", R"({"type": "string"})", ""},
    Ranged(kMaxTokensRange),
    Ranged(kTemperatureRange),
    Ranged(kTopPRange),
    Ranged(kTopKRange),
    Ranged(kMinPRange),
    Ranged(kTypicalPRange),
    Ranged(kRepetitionPenaltyRange),
    Ranged(kPresencePenaltyRange),
    Ranged(kFrequencyPenaltyRange),
    {"seed", kSeedSchema, "drawn at random by default; negative ones wrap"},
    {"stop", R"({"type": "string", "minLength": 1})", "the text ends before it"},
    {"ignore_eos", R"({"type": "boolean", "default": false})", ""},
    {"stream", R"({"type": "boolean"})", "must be what the path says"},
};

// ---- Reading ------------------------------------------------------------------------------------

absl::StatusOr<inference::InferParameter> ReadParameter(const std::string& name,
                                                        const Json& value) {
  inference::InferParameter parameter;
  if (value.is_boolean()) {
    parameter.set_bool_param(value.get<bool>());
  } else if (value.is_number_unsigned() &&
             value.get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()}) {
    parameter.set_uint64_param(value.get<uint64_t>());
  } else if (value.is_number_integer()) {
    parameter.set_int64_param(value.get<int64_t>());
  } else if (value.is_number()) {
    parameter.set_double_param(value.get<double>());
  } else if (value.is_string()) {
    parameter.set_string_param(value.get<std::string>());
  } else {
    return WrongType(name.c_str(), "true, false, a number or a string", value);
  }
  return parameter;
}

using ParameterMap = google::protobuf::Map<std::string, inference::InferParameter>;

// The members of "parameters", but for those that are null.
absl::Status ReadParameters(const Json& object, ParameterMap& parameters) {
  const Json* members = Find(object, "parameters");
  if (members == nullptr) return absl::OkStatus();
  if (!members->is_object()) return WrongType("parameters", "an object", *members);
  for (const auto& [name, value] : members->items()) {
    if (value.is_null()) continue;
    HIPPODROME_ASSIGN_OR_RETURN(parameters[name], ReadParameter(name, value));
  }
  return absl::OkStatus();
}

// Takes a flag of this transport out of the parameters.
absl::StatusOr<std::optional<bool>> TakeFlag(const char* name, ParameterMap& parameters) {
  const auto it = parameters.find(name);
  if (it == parameters.end()) return std::nullopt;
  if (!it->second.has_bool_param()) return FieldError(name, "expected true or false");
  const bool value = it->second.bool_param();
  parameters.erase(it);
  return value;
}

absl::Status AppendTexts(const Json& data, inference::InferTensorContents& contents) {
  if (data.is_string()) {
    contents.add_bytes_contents(data.get<std::string>());
    return absl::OkStatus();
  }
  if (!data.is_array()) return WrongType("data", "strings or arrays of strings", data);
  for (const Json& entry : data) HIPPODROME_RETURN_IF_ERROR(AppendTexts(entry, contents));
  return absl::OkStatus();
}

// Takes the tensor's part of the bytes behind the JSON.
absl::Status TakeBinary(std::string_view& rest,
                        inference::ModelInferRequest::InferInputTensor& input) {
  const auto it = input.mutable_parameters()->find("binary_data_size");
  const int64_t size = it->second.has_int64_param() ? it->second.int64_param() : -1;
  if (size < 0 || static_cast<uint64_t>(size) > rest.size()) {
    return FieldError("binary_data_size", "expected an integer up to " +
                                              std::to_string(rest.size()) +
                                              ", the bytes that are left behind the JSON");
  }
  input.mutable_parameters()->erase(it);
  // A text takes four bytes at least.
  HIPPODROME_ASSIGN_OR_RETURN(const int64_t count, CountElements(input.shape(), size / 4));
  HIPPODROME_ASSIGN_OR_RETURN(const std::vector<std::string> texts,
                              SplitTexts(rest.substr(0, static_cast<size_t>(size)), count));
  for (const std::string& text : texts) input.mutable_contents()->add_bytes_contents(text);
  rest.remove_prefix(static_cast<size_t>(size));
  return absl::OkStatus();
}

absl::Status ReadShape(const Json& json, google::protobuf::RepeatedField<int64_t>& shape) {
  const Json* sizes = Find(json, "shape");
  if (sizes == nullptr) return FieldError("shape", "it is missing");
  if (!sizes->is_array()) return WrongType("shape", "an array of integers", *sizes);
  for (const Json& size : *sizes) {
    const bool fits = size.is_number_integer() &&
                      (!size.is_number_unsigned() ||
                       size.get<uint64_t>() <= uint64_t{std::numeric_limits<int64_t>::max()});
    if (!fits) return FieldError("shape", "expected integers");
    shape.Add(size.get<int64_t>());
  }
  return absl::OkStatus();
}

absl::Status ReadInput(const Json& json, std::string_view& rest,
                       inference::ModelInferRequest::InferInputTensor& input) {
  constexpr RequestField kKnown[] = {{"name"}, {"shape"}, {"datatype"}, {"parameters"}, {"data"}};
  if (!json.is_object()) return WrongType("inputs", "objects", json);
  HIPPODROME_RETURN_IF_ERROR(CheckFields(json, kKnown));
  HIPPODROME_ASSIGN_OR_RETURN(auto name, TextField(json, "name"));
  if (!name) return FieldError("name", "it is missing");
  input.set_name(*std::move(name));
  HIPPODROME_ASSIGN_OR_RETURN(auto datatype, TextField(json, "datatype"));
  if (datatype.value_or("") != "BYTES") return FieldError("datatype", "expected BYTES");
  input.set_datatype("BYTES");
  HIPPODROME_RETURN_IF_ERROR(ReadShape(json, *input.mutable_shape()));
  HIPPODROME_RETURN_IF_ERROR(ReadParameters(json, *input.mutable_parameters()));
  const Json* data = Find(json, "data");
  const bool binary = input.parameters().contains("binary_data_size");
  if (binary && data != nullptr) return FieldError("data", "it is there beside binary data");
  if (binary) return TakeBinary(rest, input);
  if (data == nullptr) return FieldError("data", "it is missing");
  return AppendTexts(*data, *input.mutable_contents());
}

absl::Status ReadOutput(const Json& json, InferCall& call) {
  constexpr RequestField kKnown[] = {{"name"}, {"parameters"}};
  if (!json.is_object()) return WrongType("outputs", "objects", json);
  HIPPODROME_RETURN_IF_ERROR(CheckFields(json, kKnown));
  HIPPODROME_ASSIGN_OR_RETURN(const auto name, TextField(json, "name"));
  if (!name) return FieldError("name", "it is missing");
  auto& output = *call.request.add_outputs();
  output.set_name(*name);
  HIPPODROME_RETURN_IF_ERROR(ReadParameters(json, *output.mutable_parameters()));
  HIPPODROME_ASSIGN_OR_RETURN(const auto binary,
                              TakeFlag("binary_data", *output.mutable_parameters()));
  if (binary) call.binary_of[*name] = *binary;
  return absl::OkStatus();
}

// The array `field`, or null where it is absent.
absl::StatusOr<const Json*> FindArray(const Json& json, const char* field) {
  const Json* array = Find(json, field);
  if (array != nullptr && !array->is_array()) return WrongType(field, "an array", *array);
  return array;
}

// ---- Writing ------------------------------------------------------------------------------------

std::string DumpKServe(const KServeJson& json) {
  return json.dump(-1, ' ', false, KServeJson::error_handler_t::replace);
}

KServeJson Data(const OutputTensor& tensor) {
  const inference::InferTensorContents& contents = tensor.contents();
  if (tensor.datatype() == "FP32") return KServeJson(contents.fp32_contents());
  if (tensor.datatype() == "INT32") return KServeJson(contents.int_contents());
  if (tensor.datatype() == "INT64") return KServeJson(contents.int64_contents());
  KServeJson texts = KServeJson::array();
  for (const std::string& text : contents.bytes_contents()) texts.push_back(text);
  return texts;
}

KServeJson TensorsJson(
    const google::protobuf::RepeatedPtrField<inference::ModelMetadataResponse::TensorMetadata>&
        tensors) {
  KServeJson list = KServeJson::array();
  for (const auto& tensor : tensors) {
    list.push_back({{"name", tensor.name()},
                    {"datatype", tensor.datatype()},
                    {"shape", KServeJson(tensor.shape())}});
  }
  return list;
}

}  // namespace

const RequestFields kInferFields = kInfer;
const RequestFields kKServeGenerateFields = kGenerate;

absl::StatusOr<InferCall> ParseInfer(const std::string& body, std::optional<size_t> json_bytes) {
  if (json_bytes && *json_bytes > body.size()) {
    return InvalidArgument("Inference-Header-Content-Length is " + std::to_string(*json_bytes) +
                           ", but the body has " + std::to_string(body.size()) + " bytes");
  }
  const size_t size = json_bytes.value_or(body.size());
  HIPPODROME_ASSIGN_OR_RETURN(const Json json, ParseObject(body.substr(0, size)));
  HIPPODROME_RETURN_IF_ERROR(CheckFields(json, kInferFields));
  InferCall call;
  HIPPODROME_ASSIGN_OR_RETURN(auto id, TextField(json, "id"));
  if (id) call.request.set_id(*std::move(id));
  HIPPODROME_RETURN_IF_ERROR(ReadParameters(json, *call.request.mutable_parameters()));
  HIPPODROME_ASSIGN_OR_RETURN(const auto binary,
                              TakeFlag("binary_data_output", *call.request.mutable_parameters()));
  call.binary = binary.value_or(false);
  std::string_view rest = std::string_view(body).substr(size);
  HIPPODROME_ASSIGN_OR_RETURN(const Json* inputs, FindArray(json, "inputs"));
  if (inputs == nullptr) return FieldError("inputs", "it is missing");
  for (const Json& input : *inputs) {
    HIPPODROME_RETURN_IF_ERROR(ReadInput(input, rest, *call.request.add_inputs()));
  }
  if (!rest.empty()) {
    return InvalidArgument(std::to_string(rest.size()) + " bytes behind the last input");
  }
  HIPPODROME_ASSIGN_OR_RETURN(const Json* outputs, FindArray(json, "outputs"));
  if (outputs == nullptr) return call;
  for (const Json& output : *outputs) HIPPODROME_RETURN_IF_ERROR(ReadOutput(output, call));
  return call;
}

absl::StatusOr<inference::ModelInferRequest> ParseKServeGenerate(const std::string& body) {
  HIPPODROME_ASSIGN_OR_RETURN(const Json json, ParseObject(body));
  HIPPODROME_RETURN_IF_ERROR(CheckFields(json, kKServeGenerateFields));
  inference::ModelInferRequest request;
  HIPPODROME_ASSIGN_OR_RETURN(auto id, TextField(json, "id"));
  if (id) request.set_id(*std::move(id));
  HIPPODROME_ASSIGN_OR_RETURN(auto text, TextField(json, "text_input"));
  if (!text) return FieldError("text_input", "it is missing");
  auto& input = *request.add_inputs();
  input.set_name("text_input");
  input.set_datatype("BYTES");
  input.add_shape(1);
  input.mutable_contents()->add_bytes_contents(*std::move(text));
  HIPPODROME_RETURN_IF_ERROR(ReadParameters(json, *request.mutable_parameters()));
  for (const auto& [name, value] : json.items()) {
    if (value.is_null() || name == "id" || name == "text_input" || name == "parameters") continue;
    if (request.parameters().contains(name)) return FieldError(name, "it is there twice");
    HIPPODROME_ASSIGN_OR_RETURN((*request.mutable_parameters())[name], ReadParameter(name, value));
  }
  return request;
}

InferBody InferResponseBody(const InferCall& call, const inference::ModelInferResponse& response) {
  KServeJson json = {{"model_name", response.model_name()},
                     {"model_version", response.model_version()}};
  if (!response.id().empty()) json["id"] = response.id();
  json["outputs"] = KServeJson::array();
  std::string tail;
  bool any_binary = false;
  for (const OutputTensor& tensor : response.outputs()) {
    KServeJson& output =
        json["outputs"].emplace_back(KServeJson{{"name", tensor.name()},
                                                {"datatype", tensor.datatype()},
                                                {"shape", KServeJson(tensor.shape())}});
    const auto it = call.binary_of.find(tensor.name());
    if (it == call.binary_of.end() ? !call.binary : !it->second) {
      output["data"] = Data(tensor);
      continue;
    }
    const std::string raw = RawContents(tensor);
    output["parameters"] = {{"binary_data_size", raw.size()}};
    tail += raw;
    any_binary = true;
  }
  std::string body = DumpKServe(json);
  const size_t json_bytes = body.size();
  body += tail;
  return {std::move(body), any_binary ? std::optional(json_bytes) : std::nullopt};
}

std::string ServerMetadataBody(const inference::ServerMetadataResponse& metadata) {
  KServeJson extensions = KServeJson::array();
  for (const std::string& extension : metadata.extensions()) extensions.push_back(extension);
  return DumpKServe(
      {{"name", metadata.name()}, {"version", metadata.version()}, {"extensions", extensions}});
}

std::string ModelMetadataBody(const inference::ModelMetadataResponse& metadata) {
  KServeJson versions = KServeJson::array();
  for (const std::string& version : metadata.versions()) versions.push_back(version);
  return DumpKServe({{"name", metadata.name()},
                     {"versions", versions},
                     {"platform", metadata.platform()},
                     {"inputs", TensorsJson(metadata.inputs())},
                     {"outputs", TensorsJson(metadata.outputs())}});
}

std::string FlagBody(const std::string& model, const char* flag, bool value) {
  KServeJson json = KServeJson::object();
  if (!model.empty()) json["name"] = model;
  json[flag] = value;
  return DumpKServe(json);
}

std::string KServeTextBody(const inference::ModelInferRequest& request, const std::string& version,
                           const std::string& text) {
  KServeJson json = KServeJson::object();
  if (!request.id().empty()) json["id"] = request.id();
  json["model_name"] = request.model_name();
  json["model_version"] = version;
  json["text_output"] = text;
  return DumpKServe(json);
}

}  // namespace hippodrome
