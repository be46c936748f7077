#include "server/json/batch_json.h"

#include "engine/base/field_error.h"
#include "engine/base/status.h"
#include "server/json/json_fields.h"

namespace hippodrome {
namespace {

constexpr size_t kMostMetadata = 16;
constexpr size_t kMostMetadataName = 64;
constexpr size_t kMostMetadataValue = 512;

constexpr RequestField kBatch[] = {
    {"input_file_id", kTextSchema, "of a file of purpose batch", true},
    {"endpoint", kTextSchema, "the path that all lines of the file are for", true},
    {"completion_window", R"({"type": "string", "enum": ["24h"]})", "", true},
    {"metadata",
     R"({"type": "object", "maxProperties": 16,
         "additionalProperties": {"type": "string", "maxLength": 512}})",
     "is given back"},
};

absl::StatusOr<std::string> Needed(const Json& json, const char* name) {
  HIPPODROME_ASSIGN_OR_RETURN(const auto text, TextField(json, name));
  if (!text) return FieldError(name, "it is missing");
  return *text;
}

absl::StatusOr<std::map<std::string, std::string>> Metadata(const Json& json) {
  std::map<std::string, std::string> metadata;
  const Json* object = Find(json, "metadata");
  if (object == nullptr) return metadata;
  if (!object->is_object()) return WrongType("metadata", "an object", *object);
  for (const auto& [name, value] : object->items()) {
    if (!value.is_string()) return WrongType("metadata", "an object of texts", value);
    const auto& text = value.get_ref<const std::string&>();
    if (name.size() > kMostMetadataName || text.size() > kMostMetadataValue) {
      return FieldError("metadata", "names have at most 64 bytes, and values 512");
    }
    metadata.emplace(name, text);
  }
  if (metadata.size() <= kMostMetadata) return metadata;
  return FieldError("metadata", "it has more than 16 members");
}

}  // namespace

const RequestFields kBatchFields = kBatch;

absl::StatusOr<BatchRequest> ParseBatch(const std::string& body) {
  HIPPODROME_ASSIGN_OR_RETURN(const Json json, ParseObject(body));
  HIPPODROME_RETURN_IF_ERROR(CheckFields(json, kBatch));
  BatchRequest request;
  HIPPODROME_ASSIGN_OR_RETURN(request.input_file, Needed(json, "input_file_id"));
  HIPPODROME_ASSIGN_OR_RETURN(request.endpoint, Needed(json, "endpoint"));
  HIPPODROME_ASSIGN_OR_RETURN(const std::string window, Needed(json, "completion_window"));
  if (window != "24h") return FieldError("completion_window", "expected \"24h\"");
  HIPPODROME_ASSIGN_OR_RETURN(request.metadata, Metadata(json));
  return request;
}

}  // namespace hippodrome
