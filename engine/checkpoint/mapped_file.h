// A read-only memory mapping of a file.
#ifndef HIPPODROME_ENGINE_CHECKPOINT_MAPPED_FILE_H_
#define HIPPODROME_ENGINE_CHECKPOINT_MAPPED_FILE_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"

namespace hippodrome {

// The file must not shrink while it is mapped. Thread-safe.
class MappedFile {
 public:
  // Errors: kNotFound, or kInvalidArgument with the system's reason; both name the path.
  static absl::StatusOr<std::unique_ptr<MappedFile>> Open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }
  // Lets go of the memory of the pages that lie within `part`, which is part of bytes(). They are
  // read from the file again when they are touched.
  void Drop(std::span<const std::byte> part) const;

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}
  const std::span<const std::byte> bytes_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_ENGINE_CHECKPOINT_MAPPED_FILE_H_
