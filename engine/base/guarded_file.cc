#include "engine/base/guarded_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "absl/cleanup/cleanup.h"
#include "engine/base/status.h"

namespace hippodrome {
namespace {

absl::Status ReadError(const std::string& path, int error) {
  return FailedPrecondition(path + ": " + std::generic_category().message(error));
}

// Of secrets, or of their hashes: that others may read it is hardly meant.
absl::Status CheckFile(const std::string& path, const struct stat& found, int64_t most) {
  if (!S_ISREG(found.st_mode)) return FailedPrecondition(path + ": not a file");
  if ((found.st_mode & (S_IRWXO | S_IWGRP)) != 0) {
    return FailedPrecondition(fmt::format(
        "{}: its mode is {:04o}: others may read it, or others than its owner may write it; "
        "chmod 640 it",
        path, found.st_mode & 07777));
  }
  if (found.st_size > most) {
    return FailedPrecondition(
        fmt::format("{}: {} bytes, expected at most {}", path, found.st_size, most));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> ReadGuardedFile(const std::string& path, int64_t most) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return ReadError(path, errno);
  const absl::Cleanup close_it = [file] { close(file); };
  struct stat found;
  if (fstat(file, &found) != 0) return ReadError(path, errno);
  HIPPODROME_RETURN_IF_ERROR(CheckFile(path, found, most));
  std::string text(static_cast<size_t>(found.st_size), '\0');
  size_t size = 0;
  for (ssize_t got = 1; got != 0 && size < text.size();) {
    got = read(file, text.data() + size, text.size() - size);
    if (got < 0 && errno != EINTR) return ReadError(path, errno);
    if (got > 0) size += static_cast<size_t>(got);
  }
  text.resize(size);
  return text;
}

}  // namespace hippodrome
