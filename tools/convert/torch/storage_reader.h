// Raw access to the storages of a torch.save file.
#ifndef HIPPODROME_TOOLS_CONVERT_TORCH_STORAGE_READER_H_
#define HIPPODROME_TOOLS_CONVERT_TORCH_STORAGE_READER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hippodrome {

class StorageReader {
 public:
  virtual ~StorageReader() = default;

  // Size of the storage in the file. Errors: kInvalidArgument when there is none of that key.
  virtual absl::StatusOr<uint64_t> Bytes(const std::string& key) const = 0;
  // Reads out.size() bytes from `offset` on. Fast when the reads of one storage go forward.
  virtual absl::Status Read(const std::string& key, uint64_t offset, std::span<std::byte> out) = 0;
};

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_CONVERT_TORCH_STORAGE_READER_H_
