// torch.save since 1.6: a zip archive with <top>/data.pkl and one entry <top>/data/<key> per
// storage.
#include <sys/stat.h>
#include <zip.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/base/status.h"
#include "tools/convert/printable.h"
#include "tools/convert/torch/pickle.h"
#include "tools/convert/torch/torch_checkpoint.h"

namespace hippodrome {
namespace {

// ---- The archive -------------------------------------------------------------------------------

// A zip archive of stored (uncompressed) entries, read in pieces and never unpacked to disk.
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

// ---- The checkpoint ----------------------------------------------------------------------------

constexpr std::string_view kPickleName = "/data.pkl";

class ZipStorages : public StorageReader {
 public:
  ZipStorages(std::unique_ptr<ZipArchive> archive, const std::string& top)
      : archive_(std::move(archive)), prefix_(top + "/data/") {}

  absl::StatusOr<uint64_t> Bytes(const std::string& key) const override {
    const auto entry = archive_->entries().find(prefix_ + key);
    if (entry == archive_->entries().end()) {
      return InvalidArgument("storage '" + key + "' is missing from the file");
    }
    return entry->second.bytes;
  }

  absl::Status Read(const std::string& key, uint64_t offset, std::span<std::byte> out) override {
    return archive_->Read(archive_->entries().at(prefix_ + key), offset, out);
  }

 private:
  std::unique_ptr<ZipArchive> archive_;
  std::string prefix_;
};

// The <top> of <top>/data.pkl.
absl::StatusOr<std::string> FindTop(const ZipArchive& archive) {
  std::string top;
  for (const auto& [name, entry] : archive.entries()) {
    if (!name.ends_with(kPickleName)) continue;
    if (!top.empty()) return InvalidArgument("the zip file has more than one data.pkl");
    top = name.substr(0, name.size() - kPickleName.size());
  }
  if (top.empty()) {
    return InvalidArgument("the zip file has no data.pkl; expected one written by torch.save");
  }
  return top;
}

absl::StatusOr<std::vector<std::byte>> ReadSmallEntry(ZipArchive& archive, const std::string& name,
                                                      size_t limit) {
  const ZipArchive::Entry entry = archive.entries().at(name);
  if (entry.bytes > limit) {
    return InvalidArgument("zip entry '" + name + "' has " + std::to_string(entry.bytes) +
                           " bytes; expected at most " + std::to_string(limit));
  }
  std::vector<std::byte> bytes(entry.bytes);
  HIPPODROME_RETURN_IF_ERROR(archive.Read(entry, 0, bytes));
  return bytes;
}

absl::Status CheckByteOrder(ZipArchive& archive, const std::string& top) {
  const std::string name = top + "/byteorder";
  if (!archive.entries().contains(name)) return absl::OkStatus();
  HIPPODROME_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes,
                              ReadSmallEntry(archive, name, 16));
  const std::string_view order(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (order != "little") return InvalidArgument("the file is not little-endian");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<CheckpointSource>> OpenZipCheckpoint(const std::string& path) {
  HIPPODROME_ASSIGN_OR_RETURN(std::unique_ptr<ZipArchive> archive, ZipArchive::Open(path));
  HIPPODROME_ASSIGN_OR_RETURN(const std::string top, FindTop(*archive));
  HIPPODROME_RETURN_IF_ERROR(CheckByteOrder(*archive, top));
  HIPPODROME_ASSIGN_OR_RETURN(
      const std::vector<std::byte> bytes,
      ReadSmallEntry(*archive, top + std::string(kPickleName), kMaxPickleBytes));
  HIPPODROME_ASSIGN_OR_RETURN(const Pickle pickle, ParsePickle(bytes));
  HIPPODROME_ASSIGN_OR_RETURN(TorchStateDict state, ReadTorchStateDict(pickle));
  const uint64_t file_bytes = archive->file_bytes();
  return TorchCheckpoint::Make(std::move(state),
                               std::make_unique<ZipStorages>(std::move(archive), top), file_bytes);
}

}  // namespace hippodrome
