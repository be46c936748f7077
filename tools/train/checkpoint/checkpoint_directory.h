// The folders DIR/checkpoints/step-N of a training run, each of which appears whole or not at all.
#ifndef HIPPODROME_TOOLS_TRAIN_CHECKPOINT_CHECKPOINT_DIRECTORY_H_
#define HIPPODROME_TOOLS_TRAIN_CHECKPOINT_CHECKPOINT_DIRECTORY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hippodrome {

// The process may be killed, or the machine lose power, between any two operations of these
// functions: then the folders named step-N are those from before or those from after, each with all
// of its files. Folders named *.tmp are what such an end leaves; Begin() removes them. Errors:
// kInternal with the path and the system's reason.
class CheckpointDirectory {
 public:
  explicit CheckpointDirectory(const std::string& output) : path_(output + "/checkpoints") {}

  // The steps of all checkpoints, newest first. None when the directory does not exist.
  absl::StatusOr<std::vector<int64_t>> Steps() const;
  // Where the checkpoint of `step` lies.
  std::string Path(int64_t step) const;

  // An empty folder for the files of the checkpoint of `step`.
  absl::StatusOr<std::string> Begin(int64_t step) const;
  // Makes what was written since Begin() the checkpoint of `step`. Checkpoints of that step and
  // later ones, which training came back from, are removed first; then all but the newest `keep`.
  absl::Status Publish(int64_t step, size_t keep) const;

 private:
  std::string Partial(int64_t step) const { return Path(step) + ".tmp"; }
  absl::Status Remove(int64_t step) const;

  std::string path_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_TRAIN_CHECKPOINT_CHECKPOINT_DIRECTORY_H_
