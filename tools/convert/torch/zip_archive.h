// A zip archive of stored (uncompressed) entries, read in pieces and never unpacked to disk.
#ifndef HIPPODROME_TOOLS_CONVERT_TORCH_ZIP_ARCHIVE_H_
#define HIPPODROME_TOOLS_CONVERT_TORCH_ZIP_ARCHIVE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

struct zip;
struct zip_file;

namespace hippodrome {

class ZipArchive {
 public:
  // ZIP64 included. Errors: kInvalidArgument for a damaged archive, an entry that is compressed,
  // encrypted or larger than the file, or two entries of one name.
  static absl::StatusOr<std::unique_ptr<ZipArchive>> Open(const std::string& path);
  ~ZipArchive();
  ZipArchive(const ZipArchive&) = delete;
  ZipArchive& operator=(const ZipArchive&) = delete;

  struct Entry {
    uint64_t index = 0;
    uint64_t bytes = 0;
  };
  const std::map<std::string, Entry>& entries() const { return entries_; }
  uint64_t file_bytes() const { return file_bytes_; }

  // Fills `out` from `offset` of `entry` on. The last entry read stays open, so that reads that go
  // forward are cheap; one that goes from begin to end is checked against its CRC.
  absl::Status Read(const Entry& entry, uint64_t offset, std::span<std::byte> out);

 private:
  ZipArchive(zip* archive, uint64_t file_bytes) : archive_(archive), file_bytes_(file_bytes) {}
  absl::Status ListEntries();
  absl::Status OpenEntry(const Entry& entry, uint64_t offset);
  absl::Status CheckEnd();
  void CloseEntry();

  zip* archive_;
  uint64_t file_bytes_;
  std::map<std::string, Entry> entries_;
  zip_file* open_ = nullptr;
  uint64_t open_index_ = 0;
  uint64_t position_ = 0;
};

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_CONVERT_TORCH_ZIP_ARCHIVE_H_
