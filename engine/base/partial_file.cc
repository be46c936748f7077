#include "engine/base/partial_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "engine/base/durable_files.h"
#include "engine/base/status.h"

namespace hippodrome {

absl::StatusOr<std::unique_ptr<PartialFile>> PartialFile::Create(const std::string& path) {
  const std::string partial = path + ".partial";
  FILE* file = std::fopen(partial.c_str(), "wbe");
  if (file == nullptr) return Internal(partial + ": " + std::strerror(errno));
  return std::unique_ptr<PartialFile>(new PartialFile(path, partial, file));
}

PartialFile::~PartialFile() {
  if (open()) Fail("abandoned").IgnoreError();
}

absl::Status PartialFile::Fail(const std::string& reason) {
  if (open()) std::fclose(std::exchange(file_, nullptr));
  unlink(partial_.c_str());
  return Internal(path_ + ": " + reason);
}

absl::Status PartialFile::Append(std::span<const std::byte> bytes) {
  if (!open()) return FailedPrecondition(path_ + ": not open for writing");
  if (bytes.empty()) return absl::OkStatus();  // an empty span may have no address
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) {
    return Fail(std::strerror(errno));
  }
  size_ += bytes.size();
  return absl::OkStatus();
}

absl::Status PartialFile::Finish() {
  if (!open()) return FailedPrecondition(path_ + ": not open for writing");
  if (std::fflush(file_) != 0 || fsync(fileno(file_)) != 0) return Fail(std::strerror(errno));
  const bool closed = std::fclose(std::exchange(file_, nullptr)) == 0;
  if (!closed) return Fail(std::strerror(errno));
  const absl::Status renamed = RenameDurably(partial_, path_);
  if (!renamed.ok()) unlink(partial_.c_str());
  return renamed;
}

}  // namespace hippodrome
