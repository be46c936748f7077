// A file that appears under its name only when it is whole.
#ifndef HIPPODROME_ENGINE_BASE_PARTIAL_FILE_H_
#define HIPPODROME_ENGINE_BASE_PARTIAL_FILE_H_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hippodrome {

// Written beside its place, as PATH.partial, from begin to end; without Finish() the destructor
// removes what was written. All errors: kInternal with the path and the system's reason (disk
// full), after which nothing more can be written.
class PartialFile {
 public:
  static absl::StatusOr<std::unique_ptr<PartialFile>> Create(const std::string& path);
  ~PartialFile();
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  const std::string& path() const { return path_; }
  bool open() const { return file_ != nullptr; }  // neither finished nor failed
  uint64_t size() const { return size_; }         // bytes so far

  absl::Status Append(std::span<const std::byte> bytes);
  absl::Status Append(std::string_view text) { return Append(std::as_bytes(std::span(text))); }
  // Writes what is held back to the disk, and renames.
  absl::Status Finish();
  // Removes what was written, and gives the error PATH: REASON.
  absl::Status Fail(const std::string& reason);

 private:
  PartialFile(std::string path, std::string partial, FILE* file)
      : path_(std::move(path)), partial_(std::move(partial)), file_(file) {}

  std::string path_;
  std::string partial_;
  FILE* file_;
  uint64_t size_ = 0;
};

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_BASE_PARTIAL_FILE_H_
