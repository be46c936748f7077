// An output directory that gets all of its new files or none.
#ifndef HIPPODROME_TOOLS_CONVERT_STAGED_DIRECTORY_H_
#define HIPPODROME_TOOLS_CONVERT_STAGED_DIRECTORY_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hippodrome {

class StagedDirectory {
 public:
  // Makes `target` (whose parent exists) if needed, and a hidden directory in it for the files to
  // come. Errors: kFailedPrecondition with the path and the system's reason.
  static absl::StatusOr<std::unique_ptr<StagedDirectory>> Create(const std::string& target);
  // Removes what was not published, and `target` if this made it.
  ~StagedDirectory();
  StagedDirectory(const StagedDirectory&) = delete;
  StagedDirectory& operator=(const StagedDirectory&) = delete;

  // Where to write the file that shall become target/name. Files are published in this order.
  std::string Add(const std::string& name);
  // Renames all added files into the target, replacing files of the same names. Other files in the
  // target stay.
  absl::Status Publish();

 private:
  StagedDirectory(std::string target, std::string staging, bool made_target)
      : target_(std::move(target)), staging_(std::move(staging)), made_target_(made_target) {}

  std::string target_;
  std::string staging_;
  bool made_target_;
  std::vector<std::string> names_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_CONVERT_STAGED_DIRECTORY_H_
