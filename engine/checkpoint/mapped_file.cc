#include "engine/checkpoint/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "engine/base/status.h"

namespace hippodrome {
namespace {

absl::Status SystemError(const std::string& path) {
  const std::string message = path + ": " + std::strerror(errno);
  return errno == ENOENT ? NotFound(message) : InvalidArgument(message);
}

absl::StatusOr<std::span<const std::byte>> Map(int descriptor, const std::string& path) {
  struct stat info;
  if (fstat(descriptor, &info) != 0) return SystemError(path);
  if (!S_ISREG(info.st_mode)) return InvalidArgument(path + ": expected a regular file");
  const size_t size = static_cast<size_t>(info.st_size);
  // An empty mapping does not exist.
  if (size == 0) return std::span<const std::byte>();
  void* start = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (start == MAP_FAILED) return SystemError(path);
  // Tensors are read from beginning to end, once.
  madvise(start, size, MADV_SEQUENTIAL);
  return std::span(static_cast<const std::byte*>(start), size);
}

}  // namespace

absl::StatusOr<std::unique_ptr<MappedFile>> MappedFile::Open(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return SystemError(path);
  const auto bytes = Map(descriptor, path);
  close(descriptor);
  if (!bytes.ok()) return bytes.status();
  return std::unique_ptr<MappedFile>(new MappedFile(*bytes));
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void MappedFile::Drop(std::span<const std::byte> part) const {
  const uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t start = reinterpret_cast<uintptr_t>(part.data());
  const uintptr_t first = (start + page - 1) / page * page;
  const uintptr_t last = (start + part.size()) / page * page;
  if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

}  // namespace hippodrome
