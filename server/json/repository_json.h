// The bodies of Triton's extension for model repositories.
#ifndef HIPPODROME_SERVER_JSON_REPOSITORY_JSON_H_
#define HIPPODROME_SERVER_JSON_REPOSITORY_JSON_H_

#include <chrono>
#include <optional>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "server/handlers/model_repository.h"
#include "server/json/request_fields.h"

namespace hippodrome {

// What a call of .../load or .../unload says.
struct ModelChange {
  std::string directory;                      // empty: that of before
  std::optional<std::chrono::seconds> grace;  // nothing: requests in progress end by themselves
};

extern const RequestFields kRepositoryIndexFields;
extern const RequestFields kModelLoadFields;
extern const RequestFields kModelUnloadFields;

// All bodies may be empty, which is as {}. Errors: kInvalidArgument naming the field, or the place
// of a syntax error.

// Whether only models that are ready shall be listed.
absl::StatusOr<bool> ParseRepositoryIndex(const std::string& body);
absl::StatusOr<ModelChange> ParseModelLoad(const std::string& body);
absl::StatusOr<ModelChange> ParseModelUnload(const std::string& body);

// [{"name", "version", "state", "reason"}]; no reason where there is none.
std::string RepositoryIndexBody(std::span<const ModelEntry> entries, bool only_ready);

}  // namespace hippodrome

#endif  // HIPPODROME_SERVER_JSON_REPOSITORY_JSON_H_
