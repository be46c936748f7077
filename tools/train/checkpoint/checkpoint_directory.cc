#include "tools/train/checkpoint/checkpoint_directory.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <functional>
#include <optional>
#include <string_view>
#include <system_error>

#include "engine/base/durable_files.h"
#include "engine/base/status.h"

namespace hippodrome {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kPartial = ".tmp";

// The N of "step-N"; nothing for other names.
std::optional<int64_t> StepOf(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  int64_t step = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), step);
  if (error != std::errc() || end != name.data() + name.size() || step < 0) return std::nullopt;
  return step;
}

absl::StatusOr<std::vector<std::string>> NamesIn(const std::string& path) {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator entry(path, error);
  if (error == std::errc::no_such_file_or_directory) return names;
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  if (error) return Internal(path + ": " + error.message());
  return names;
}

}  // namespace

std::string CheckpointDirectory::Path(int64_t step) const {
  return path_ + "/" + std::string(kPrefix) + std::to_string(step);
}

absl::StatusOr<std::vector<int64_t>> CheckpointDirectory::Steps() const {
  HIPPODROME_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(path_));
  std::vector<int64_t> steps;
  for (const std::string& name : names) {
    if (const auto step = StepOf(name)) steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end(), std::greater<>());
  return steps;
}

absl::StatusOr<std::string> CheckpointDirectory::Begin(int64_t step) const {
  HIPPODROME_RETURN_IF_ERROR(MakeDirectories(path_));
  HIPPODROME_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(path_));
  for (const std::string& name : names) {
    if (!name.starts_with(kPrefix) || !name.ends_with(kPartial)) continue;
    HIPPODROME_RETURN_IF_ERROR(RemoveTree(path_ + "/" + name));
  }
  HIPPODROME_RETURN_IF_ERROR(MakeDirectories(Partial(step)));
  return Partial(step);
}

// Renamed first, so that no folder named step-N is ever seen without some of its files.
absl::Status CheckpointDirectory::Remove(int64_t step) const {
  const std::string removed = Path(step) + ".removed" + std::string(kPartial);
  HIPPODROME_RETURN_IF_ERROR(RenameDurably(Path(step), removed));
  return RemoveTree(removed);
}

absl::Status CheckpointDirectory::Publish(int64_t step, size_t keep) const {
  HIPPODROME_ASSIGN_OR_RETURN(const std::vector<std::string> files, NamesIn(Partial(step)));
  for (const std::string& file : files) {
    HIPPODROME_RETURN_IF_ERROR(SyncPath(Partial(step) + "/" + file));
  }
  HIPPODROME_RETURN_IF_ERROR(SyncPath(Partial(step)));
  HIPPODROME_ASSIGN_OR_RETURN(const std::vector<int64_t> before, Steps());
  for (const int64_t other : before) {
    if (other >= step) HIPPODROME_RETURN_IF_ERROR(Remove(other));
  }
  HIPPODROME_RETURN_IF_ERROR(RenameDurably(Partial(step), Path(step)));
  HIPPODROME_ASSIGN_OR_RETURN(const std::vector<int64_t> after, Steps());
  for (size_t i = keep; i < after.size(); ++i) HIPPODROME_RETURN_IF_ERROR(Remove(after[i]));
  return absl::OkStatus();
}

}  // namespace hippodrome
