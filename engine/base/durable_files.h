// Operations on files and folders that outlast a loss of power.
#ifndef HIPPODROME_ENGINE_BASE_DURABLE_FILES_H_
#define HIPPODROME_ENGINE_BASE_DURABLE_FILES_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace hippodrome {

// All errors: kInternal with the path and the system's reason.

// Writes what the system holds back of a file, or of the names in a folder.
absl::Status SyncPath(const std::string& path);
// Renames, replacing a file, and makes the new name last.
absl::Status RenameDurably(const std::string& from, const std::string& to);
// Writes a file, and waits until it lasts. What was written in part is removed.
absl::Status WriteSynced(const std::string& path, std::string_view text);
// The same beside `path`, then renames: readers see the old file or the new one. REQUIRES: nobody
// else writes this file now.
absl::Status WriteFileDurably(const std::string& path, const std::string& text);
// Renames the folder `from` to `to`; a folder `to` that is there is taken out in the same moment,
// and removed. Where the file system cannot exchange names, there is a moment without `to`.
absl::Status ReplaceDirectory(const std::string& from, const std::string& to);
// Makes the folder and those above it.
absl::Status MakeDirectories(const std::string& path);
// Removes a file or a folder with everything in it; no error when there is none.
absl::Status RemoveTree(const std::string& path);

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_BASE_DURABLE_FILES_H_
