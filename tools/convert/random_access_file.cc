#include "tools/convert/random_access_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "engine/base/status.h"

namespace hippodrome {

absl::StatusOr<std::unique_ptr<RandomAccessFile>> RandomAccessFile::Open(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return NotFound(std::string("cannot be opened: ") + std::strerror(errno));
  struct stat info;
  if (fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode)) {
    close(descriptor);
    return InvalidArgument("is not a regular file");
  }
  return std::unique_ptr<RandomAccessFile>(
      new RandomAccessFile(descriptor, static_cast<uint64_t>(info.st_size)));
}

RandomAccessFile::~RandomAccessFile() { close(descriptor_); }

absl::Status RandomAccessFile::Read(uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t count = pread(descriptor_, out.data(), out.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Internal(std::string("read failed: ") + std::strerror(errno));
    if (count == 0) {
      return InvalidArgument("truncated: " + std::to_string(out.size()) +
                             " more bytes expected at byte " + std::to_string(offset));
    }
    offset += static_cast<uint64_t>(count);
    out = out.subspan(static_cast<size_t>(count));
  }
  return absl::OkStatus();
}

}  // namespace hippodrome
