#include "engine/base/durable_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "engine/base/status.h"

namespace hippodrome {
namespace {

namespace fs = std::filesystem;

// Of an errno, 0 for none. Whoever holds a file lets go of it first: this can run out of memory.
absl::Status ErrnoStatus(const std::string& path, int error) {
  return error == 0 ? absl::OkStatus() : Internal(path + ": " + std::strerror(error));
}

absl::Status ToStatus(const std::string& path, const std::error_code& error) {
  return error ? Internal(path + ": " + error.message()) : absl::OkStatus();
}

// The folder that holds `path`.
std::string FolderOf(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

}  // namespace

absl::Status SyncPath(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return ErrnoStatus(path, errno);
  const int error = fsync(descriptor) == 0 ? 0 : errno;
  close(descriptor);
  return ErrnoStatus(path, error);
}

absl::Status RenameDurably(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0) return ErrnoStatus(to, errno);
  return SyncPath(FolderOf(to));
}

absl::Status WriteSynced(const std::string& path, std::string_view text) {
  FILE* file = std::fopen(path.c_str(), "wbe");
  if (file == nullptr) return ErrnoStatus(path, errno);
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size() &&
                       std::fflush(file) == 0 && fsync(fileno(file)) == 0;
  const int error = written ? 0 : errno;
  std::fclose(file);
  if (!written) unlink(path.c_str());
  return ErrnoStatus(path, error);
}

absl::Status WriteFileDurably(const std::string& path, const std::string& text) {
  const std::string partial = path + ".tmp";
  HIPPODROME_RETURN_IF_ERROR(WriteSynced(partial, text));
  return RenameDurably(partial, path);
}

absl::Status ReplaceDirectory(const std::string& from, const std::string& to) {
  std::error_code error;
  if (!fs::exists(to, error)) return RenameDurably(from, to);
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) {
    HIPPODROME_RETURN_IF_ERROR(SyncPath(FolderOf(to)));
    return RemoveTree(from);
  }
  const std::string old = to + ".old";
  HIPPODROME_RETURN_IF_ERROR(RemoveTree(old));
  HIPPODROME_RETURN_IF_ERROR(RenameDurably(to, old));
  HIPPODROME_RETURN_IF_ERROR(RenameDurably(from, to));
  return RemoveTree(old);
}

absl::Status MakeDirectories(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (!error && !fs::is_directory(path, error)) return Internal(path + ": is not a directory");
  return ToStatus(path, error);
}

absl::Status RemoveTree(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  return ToStatus(path, error);
}

}  // namespace hippodrome
