#include "server/json/repository_json.h"

#include <algorithm>
#include <utility>

#include "engine/base/field_error.h"
#include "engine/base/status.h"
#include "server/handlers/inference_handlers.h"
#include "server/json/json_fields.h"

namespace hippodrome {
namespace {

constexpr size_t kMostDirectoryBytes = 4096;
constexpr int64_t kMostGraceSeconds = 86400;

constexpr RequestField kRepositoryIndex[] = {
    {"ready", kFlagSchema, "whether only models that are ready are listed"},
};
constexpr RequestField kModelLoad[] = {
    {"parameters", R"({"type": "object", "additionalProperties": false, "properties": {
        "directory": {"type": "string", "maxLength": 4096,
          "description": "where the model lies; by default where it was loaded from before"},
        "grace_seconds": {"type": "integer", "minimum": 0, "maximum": 86400,
          "description": "how long requests to the model that is replaced may go on; by default to their end"}}})"},
};
constexpr RequestField kModelUnload[] = {
    {"parameters", R"({"type": "object", "additionalProperties": false, "properties": {
        "grace_seconds": {"type": "integer", "minimum": 0, "maximum": 86400,
          "description": "how long requests may go on; by default to their end"},
        "unload_dependents": {"type": "boolean", "description": "no model depends on another"}}})"},
};

// The member "parameters" of `body`, checked, or {}.
absl::StatusOr<Json> ReadRepositoryParameters(const std::string& body, RequestFields fields,
                                              RequestFields known) {
  if (body.empty()) return Json::object();
  HIPPODROME_ASSIGN_OR_RETURN(const Json json, ParseObject(body));
  HIPPODROME_RETURN_IF_ERROR(CheckFields(json, fields));
  const Json* parameters = Find(json, "parameters");
  if (parameters == nullptr) return Json::object();
  if (!parameters->is_object()) return WrongType("parameters", "an object", *parameters);
  HIPPODROME_RETURN_IF_ERROR(CheckFields(*parameters, known));
  return *parameters;
}

absl::StatusOr<std::optional<std::chrono::seconds>> ReadGrace(const Json& parameters) {
  HIPPODROME_ASSIGN_OR_RETURN(const auto seconds, IntegerField(parameters, "grace_seconds"));
  if (!seconds) return std::nullopt;
  if (*seconds >= 0 && *seconds <= kMostGraceSeconds) return std::chrono::seconds(*seconds);
  return FieldError("grace_seconds", std::to_string(*seconds) + " is not in [0, " +
                                         std::to_string(kMostGraceSeconds) + "]");
}

absl::StatusOr<std::string> ReadDirectory(const Json& parameters) {
  HIPPODROME_ASSIGN_OR_RETURN(const auto directory, TextField(parameters, "directory"));
  if (!directory) return "";
  const auto control = [](char c) { return (c >= 0 && c < ' ') || c == '\x7f'; };
  if (!directory->empty() && directory->size() <= kMostDirectoryBytes &&
      std::none_of(directory->begin(), directory->end(), control)) {
    return *directory;
  }
  return FieldError("directory", "expected 1 to " + std::to_string(kMostDirectoryBytes) +
                                     " bytes without control characters");
}

const char* StateName(ModelState state) {
  switch (state) {
    case ModelState::kReady:
      return "READY";
    case ModelState::kLoading:
      return "LOADING";
    case ModelState::kUnloading:
      return "UNLOADING";
    default:
      return "UNAVAILABLE";
  }
}

}  // namespace

const RequestFields kRepositoryIndexFields = kRepositoryIndex;
const RequestFields kModelLoadFields = kModelLoad;
const RequestFields kModelUnloadFields = kModelUnload;

absl::StatusOr<bool> ParseRepositoryIndex(const std::string& body) {
  if (body.empty()) return false;
  HIPPODROME_ASSIGN_OR_RETURN(const Json json, ParseObject(body));
  HIPPODROME_RETURN_IF_ERROR(CheckFields(json, kRepositoryIndexFields));
  HIPPODROME_ASSIGN_OR_RETURN(const auto ready, BoolField(json, "ready"));
  return ready.value_or(false);
}

absl::StatusOr<ModelChange> ParseModelLoad(const std::string& body) {
  constexpr RequestField kKnown[] = {{"directory"}, {"grace_seconds"}};
  HIPPODROME_ASSIGN_OR_RETURN(const Json parameters,
                              ReadRepositoryParameters(body, kModelLoadFields, kKnown));
  ModelChange change;
  HIPPODROME_ASSIGN_OR_RETURN(change.directory, ReadDirectory(parameters));
  HIPPODROME_ASSIGN_OR_RETURN(change.grace, ReadGrace(parameters));
  return change;
}

absl::StatusOr<ModelChange> ParseModelUnload(const std::string& body) {
  constexpr RequestField kKnown[] = {{"grace_seconds"}, {"unload_dependents"}};
  HIPPODROME_ASSIGN_OR_RETURN(const Json parameters,
                              ReadRepositoryParameters(body, kModelUnloadFields, kKnown));
  HIPPODROME_RETURN_IF_ERROR(BoolField(parameters, "unload_dependents").status());
  ModelChange change;
  HIPPODROME_ASSIGN_OR_RETURN(change.grace, ReadGrace(parameters));
  return change;
}

std::string RepositoryIndexBody(std::span<const ModelEntry> entries, bool only_ready) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const ModelEntry& entry : entries) {
    if (only_ready && entry.state != ModelState::kReady) continue;
    nlohmann::ordered_json model = {
        {"name", entry.name}, {"version", kModelVersion}, {"state", StateName(entry.state)}};
    if (!entry.reason.empty()) model["reason"] = entry.reason;
    list.push_back(std::move(model));
  }
  return list.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace hippodrome
