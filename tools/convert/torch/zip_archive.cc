#include "tools/convert/torch/zip_archive.h"

#include <sys/stat.h>
#include <zip.h>

#include <limits>

#include "engine/base/status.h"
#include "tools/convert/printable.h"

namespace hippodrome {
namespace {

constexpr int64_t kMaxEntries = 1 << 20;

absl::Status CheckStored(const zip_stat_t& stat, uint64_t file_bytes) {
  const std::string entry = "zip entry '" + Printable(stat.name) + "'";
  if (stat.encryption_method != ZIP_EM_NONE) return InvalidArgument(entry + " is encrypted");
  if (stat.comp_method != ZIP_CM_STORE) {
    return InvalidArgument(entry + " is compressed (" + std::to_string(stat.comp_size) + " to " +
                           std::to_string(stat.size) + " bytes); expected stored entries");
  }
  if (stat.size != stat.comp_size || stat.size > file_bytes) {
    return InvalidArgument(entry + " claims " + std::to_string(stat.size) + " bytes in a file of " +
                           std::to_string(file_bytes));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<ZipArchive>> ZipArchive::Open(const std::string& path) {
  struct stat file;
  if (stat(path.c_str(), &file) != 0) return NotFound("no such file");
  int code = 0;
  zip_t* archive = zip_open(path.c_str(), ZIP_RDONLY, &code);
  if (archive == nullptr) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    const std::string reason = zip_error_strerror(&error);
    zip_error_fini(&error);
    return InvalidArgument("damaged or truncated zip file: " + reason);
  }
  std::unique_ptr<ZipArchive> result(new ZipArchive(archive, static_cast<uint64_t>(file.st_size)));
  HIPPODROME_RETURN_IF_ERROR(result->ListEntries());
  return result;
}

absl::Status ZipArchive::ListEntries() {
  const zip_int64_t count = zip_get_num_entries(archive_, 0);
  if (count > kMaxEntries) return InvalidArgument(std::to_string(count) + " zip entries");
  for (zip_int64_t i = 0; i < count; ++i) {
    zip_stat_t stat;
    constexpr zip_uint64_t kNeeded = ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE |
                                     ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
    const auto index = static_cast<zip_uint64_t>(i);
    if (zip_stat_index(archive_, index, ZIP_FL_UNCHANGED, &stat) != 0 ||
        (stat.valid & kNeeded) != kNeeded) {
      return InvalidArgument("zip entry " + std::to_string(i) + " is damaged");
    }
    HIPPODROME_RETURN_IF_ERROR(CheckStored(stat, file_bytes_));
    if (!entries_.try_emplace(stat.name, Entry{index, stat.size}).second) {
      return InvalidArgument("two zip entries named '" + Printable(stat.name) + "'");
    }
  }
  return absl::OkStatus();
}

ZipArchive::~ZipArchive() {
  CloseEntry();
  zip_discard(archive_);
}

void ZipArchive::CloseEntry() {
  if (open_ != nullptr) zip_fclose(open_);
  open_ = nullptr;
}

absl::Status ZipArchive::OpenEntry(const Entry& entry, uint64_t offset) {
  if (open_ == nullptr || open_index_ != entry.index) {
    CloseEntry();
    open_ = zip_fopen_index(archive_, entry.index, ZIP_FL_UNCHANGED);
    if (open_ == nullptr) return InvalidArgument(std::string("zip: ") + zip_strerror(archive_));
    open_index_ = entry.index;
    position_ = 0;
  }
  if (position_ != offset) {
    if (zip_fseek(open_, static_cast<zip_int64_t>(offset), SEEK_SET) != 0) {
      return InvalidArgument(std::string("zip: ") + zip_file_strerror(open_));
    }
    position_ = offset;
  }
  return absl::OkStatus();
}

absl::Status ZipArchive::Read(const Entry& entry, uint64_t offset, std::span<std::byte> out) {
  if (offset > entry.bytes || out.size() > entry.bytes - offset) {
    return InvalidArgument("a read beyond the end of a zip entry");
  }
  HIPPODROME_RETURN_IF_ERROR(OpenEntry(entry, offset));
  while (!out.empty()) {
    const zip_int64_t count = zip_fread(open_, out.data(), out.size());
    if (count <= 0) {
      const std::string reason = count < 0 ? zip_file_strerror(open_) : "it ends early";
      CloseEntry();
      return InvalidArgument("damaged zip entry: " + reason);
    }
    position_ += static_cast<uint64_t>(count);
    out = out.subspan(static_cast<size_t>(count));
  }
  return position_ == entry.bytes ? CheckEnd() : absl::OkStatus();
}

// The library compares the CRC when it is asked for more than there is.
absl::Status ZipArchive::CheckEnd() {
  std::byte extra;
  if (zip_fread(open_, &extra, 1) == 0) return absl::OkStatus();
  const std::string reason = zip_file_strerror(open_);
  CloseEntry();
  return InvalidArgument("damaged zip entry: " + reason);
}

}  // namespace hippodrome
