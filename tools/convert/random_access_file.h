// A file read at given offsets.
#ifndef HIPPODROME_TOOLS_CONVERT_RANDOM_ACCESS_FILE_H_
#define HIPPODROME_TOOLS_CONVERT_RANDOM_ACCESS_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hippodrome {

class RandomAccessFile {
 public:
  // Errors: kNotFound with the system's reason; kInvalidArgument for what is not a regular file.
  static absl::StatusOr<std::unique_ptr<RandomAccessFile>> Open(const std::string& path);
  ~RandomAccessFile();
  RandomAccessFile(const RandomAccessFile&) = delete;
  RandomAccessFile& operator=(const RandomAccessFile&) = delete;

  uint64_t size() const { return size_; }
  // Fills `out`. Errors: kInvalidArgument when the file ends before.
  absl::Status Read(uint64_t offset, std::span<std::byte> out) const;

 private:
  RandomAccessFile(int descriptor, uint64_t size) : descriptor_(descriptor), size_(size) {}

  int descriptor_;
  uint64_t size_;
};

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_CONVERT_RANDOM_ACCESS_FILE_H_
