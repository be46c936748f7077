#include "server/batches/append_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "engine/base/status.h"

namespace hippodrome {
namespace {

constexpr size_t kUnflushedBytes = size_t{1} << 20;

}  // namespace

absl::StatusOr<std::unique_ptr<AppendFile>> AppendFile::Open(const std::string& path) {
  const bool standard = path == "-";
  const int descriptor =
      standard ? dup(STDOUT_FILENO) : open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor < 0) return Internal(path + ": " + std::strerror(errno));
  auto file = std::unique_ptr<AppendFile>(new AppendFile(path, descriptor, 0));
  if (standard) return file;
  if (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    return FailedPrecondition(path + ": another process writes it");
  }
  file->size_ = lseek(descriptor, 0, SEEK_END);
  if (file->size_ < 0) return file->Failure();
  return file;
}

AppendFile::~AppendFile() { close(descriptor_); }

absl::Status AppendFile::Failure() const { return Internal(path_ + ": " + std::strerror(errno)); }

absl::Status AppendFile::Append(std::string_view bytes) {
  buffer_ += bytes;
  size_ += static_cast<int64_t>(bytes.size());
  return buffer_.size() < kUnflushedBytes ? absl::OkStatus() : Flush();
}

absl::Status AppendFile::Flush() {
  size_t done = 0;
  while (done < buffer_.size()) {
    const ssize_t written = write(descriptor_, buffer_.data() + done, buffer_.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const absl::Status failure = Failure();
      buffer_.erase(0, done);
      return failure;
    }
    done += static_cast<size_t>(written);
  }
  buffer_.clear();
  return absl::OkStatus();
}

absl::Status AppendFile::Sync() {
  HIPPODROME_RETURN_IF_ERROR(Flush());
  if (path_ == "-" || fdatasync(descriptor_) == 0) return absl::OkStatus();
  return Failure();
}

absl::Status AppendFile::Overwrite(int64_t position, std::string_view bytes) {
  HIPPODROME_RETURN_IF_ERROR(Flush());
  const ssize_t written = pwrite(descriptor_, bytes.data(), bytes.size(), position);
  return written == static_cast<ssize_t>(bytes.size()) ? absl::OkStatus() : Failure();
}

absl::Status AppendFile::Truncate(int64_t size) {
  if (ftruncate(descriptor_, size) != 0 || lseek(descriptor_, size, SEEK_SET) != size) {
    return Failure();
  }
  size_ = size;
  return absl::OkStatus();
}

}  // namespace hippodrome
