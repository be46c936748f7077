// Writes a zip archive as torch.save does: entries are stored, their data begin at multiples of 64
// bytes, and all sizes are ZIP64 fields. Nothing tells when it was written.
#ifndef HIPPODROME_TOOLS_CONVERT_TORCH_ZIP_WRITER_H_
#define HIPPODROME_TOOLS_CONVERT_TORCH_ZIP_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/base/partial_file.h"

namespace hippodrome {

// Errors: those of PartialFile. The archive appears under its name with Finish().
class ZipWriter {
 public:
  static absl::StatusOr<std::unique_ptr<ZipWriter>> Create(const std::string& path);

  // `name`: ASCII, of at most 65535 bytes, different for each entry.
  absl::Status Add(const std::string& name, std::span<const std::byte> data);
  absl::Status Add(const std::string& name, std::string_view data) {
    return Add(name, std::as_bytes(std::span(data)));
  }
  absl::Status Finish();

 private:
  explicit ZipWriter(std::unique_ptr<PartialFile> file) : file_(std::move(file)) {}

  std::unique_ptr<PartialFile> file_;
  std::string directory_;  // at the end of the archive: an item for each entry
  uint64_t entries_ = 0;
};

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_CONVERT_TORCH_ZIP_WRITER_H_
