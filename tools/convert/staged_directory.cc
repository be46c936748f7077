#include "tools/convert/staged_directory.h"

#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "engine/base/status.h"

namespace hippodrome {
namespace fs = std::filesystem;

absl::StatusOr<std::unique_ptr<StagedDirectory>> StagedDirectory::Create(
    const std::string& target) {
  std::error_code error;
  const bool made = fs::create_directory(target, error);
  if (error || !fs::is_directory(target)) {
    return FailedPrecondition(
        target + ": cannot be made: " + (error ? error.message() : "it is not a directory"));
  }
  std::string staging = target + "/.incomplete-XXXXXX";
  if (mkdtemp(staging.data()) == nullptr) {
    const std::string reason = std::strerror(errno);
    if (made) fs::remove(target, error);
    return FailedPrecondition(target + ": cannot be written: " + reason);
  }
  return std::unique_ptr<StagedDirectory>(new StagedDirectory(target, staging, made));
}

StagedDirectory::~StagedDirectory() {
  std::error_code ignored;
  fs::remove_all(staging_, ignored);
  if (made_target_) fs::remove(target_, ignored);  // does nothing unless it is empty
}

std::string StagedDirectory::Add(const std::string& name) {
  names_.push_back(name);
  return staging_ + "/" + name;
}

absl::Status StagedDirectory::Publish() {
  for (const std::string& name : names_) {
    std::error_code error;
    fs::rename(staging_ + "/" + name, target_ + "/" + name, error);
    if (error) return FailedPrecondition(target_ + "/" + name + ": " + error.message());
  }
  return absl::OkStatus();
}

}  // namespace hippodrome
