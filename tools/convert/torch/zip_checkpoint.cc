// torch.save since 1.6: a zip archive with <top>/data.pkl and one entry <top>/data/<key> per
// storage.
#include <string_view>

#include "engine/base/status.h"
#include "tools/convert/torch/pickle.h"
#include "tools/convert/torch/torch_checkpoint.h"
#include "tools/convert/torch/zip_archive.h"

namespace hippodrome {
namespace {

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
