// torch.save before 1.6: five pickles (magic number, protocol version, system, object, storage
// keys), then per storage an int64 element count and the elements.
#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <map>

#include "engine/base/status.h"
#include "tools/convert/printable.h"
#include "tools/convert/random_access_file.h"
#include "tools/convert/torch/pickle.h"
#include "tools/convert/torch/torch_checkpoint.h"

namespace hippodrome {
namespace {

using Kind = PickleNode::Kind;

struct Extent {
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

class LegacyStorages : public StorageReader {
 public:
  LegacyStorages(std::unique_ptr<RandomAccessFile> file, std::map<std::string, Extent> extents)
      : file_(std::move(file)), extents_(std::move(extents)) {}

  absl::StatusOr<uint64_t> Bytes(const std::string& key) const override {
    const auto extent = extents_.find(key);
    if (extent == extents_.end()) {
      return InvalidArgument("storage '" + key + "' is missing from the file");
    }
    return extent->second.bytes;
  }

  absl::Status Read(const std::string& key, uint64_t offset, std::span<std::byte> out) override {
    return file_->Read(extents_.at(key).offset + offset, out);
  }

 private:
  std::unique_ptr<RandomAccessFile> file_;
  std::map<std::string, Extent> extents_;
};

// The pickles at the start of the file, one after another.
class PickleSequence {
 public:
  static absl::StatusOr<PickleSequence> Load(const RandomAccessFile& file) {
    PickleSequence sequence;
    sequence.bytes_.resize(std::min<uint64_t>(file.size(), kMaxPickleBytes));
    HIPPODROME_RETURN_IF_ERROR(file.Read(0, sequence.bytes_));
    return sequence;
  }

  absl::StatusOr<Pickle> Next() {
    absl::StatusOr<Pickle> pickle = ParsePickle(std::span(bytes_).subspan(position_));
    if (pickle.ok()) position_ += pickle->size;
    return pickle;
  }

  uint64_t position() const { return position_; }

 private:
  std::vector<std::byte> bytes_;
  uint64_t position_ = 0;
};

absl::Status CheckPreamble(PickleSequence& pickles) {
  HIPPODROME_RETURN_IF_ERROR(pickles.Next().status());  // the magic number, seen by the caller
  HIPPODROME_ASSIGN_OR_RETURN(const Pickle version, pickles.Next());
  const PickleNode& number = version[version.root];
  if (number.kind != Kind::kInteger || number.integer != 1001) {
    return InvalidArgument("legacy file of version " + Describe(version, number) +
                           "; expected 1001");
  }
  HIPPODROME_ASSIGN_OR_RETURN(const Pickle system, pickles.Next());
  const PickleNode* little = system.Find(system[system.root], "little_endian");
  if (little == nullptr || little->kind != Kind::kBool || little->integer == 0) {
    return InvalidArgument("the file is not marked as little-endian");
  }
  return absl::OkStatus();
}

// Reads the element count before a storage and advances `position` behind its data.
absl::StatusOr<Extent> LocateStorage(const RandomAccessFile& file, const TorchStorage& storage,
                                     uint64_t& position) {
  uint64_t count = 0;
  HIPPODROME_RETURN_IF_ERROR(
      file.Read(position, std::as_writable_bytes(std::span(&count, size_t{1}))));
  if (count != storage.elements) {
    return InvalidArgument("storage '" + storage.key + "' begins with the element count " +
                           std::to_string(count) + "; expected " +
                           std::to_string(storage.elements));
  }
  const Extent extent{position + sizeof count, storage.bytes()};
  if (extent.bytes > file.size() - extent.offset) {
    return InvalidArgument("truncated: storage '" + storage.key + "' needs " +
                           std::to_string(extent.bytes) + " bytes at byte " +
                           std::to_string(extent.offset) + " of " + std::to_string(file.size()));
  }
  position = extent.offset + extent.bytes;
  return extent;
}

absl::StatusOr<std::map<std::string, Extent>> LocateStorages(
    const RandomAccessFile& file, const Pickle& keys, uint64_t position,
    const std::map<std::string, TorchStorage>& known) {
  const PickleNode& list = keys[keys.root];
  if (list.kind != Kind::kList) return InvalidArgument("the list of storage keys is missing");
  std::map<std::string, Extent> extents;
  for (const PickleId id : list.items) {
    const std::string key(keys[id].text.substr(0, 128));
    const auto storage = known.find(key);
    if (storage == known.end() || extents.contains(key)) {
      return InvalidArgument("the list of storage keys has an unknown or repeated key '" +
                             Printable(key) + "'");
    }
    HIPPODROME_ASSIGN_OR_RETURN(extents[key], LocateStorage(file, storage->second, position));
  }
  return extents;
}

}  // namespace

static_assert(std::endian::native == std::endian::little);

absl::StatusOr<std::unique_ptr<CheckpointSource>> OpenLegacyCheckpoint(const std::string& path) {
  HIPPODROME_ASSIGN_OR_RETURN(std::unique_ptr<RandomAccessFile> file, RandomAccessFile::Open(path));
  HIPPODROME_ASSIGN_OR_RETURN(PickleSequence pickles, PickleSequence::Load(*file));
  HIPPODROME_RETURN_IF_ERROR(CheckPreamble(pickles));
  HIPPODROME_ASSIGN_OR_RETURN(const Pickle object, pickles.Next());
  HIPPODROME_ASSIGN_OR_RETURN(TorchStateDict state, ReadTorchStateDict(object));
  HIPPODROME_ASSIGN_OR_RETURN(const auto known, ListTorchStorages(object));
  HIPPODROME_ASSIGN_OR_RETURN(const Pickle keys, pickles.Next());
  HIPPODROME_ASSIGN_OR_RETURN(auto extents, LocateStorages(*file, keys, pickles.position(), known));
  const uint64_t file_bytes = file->size();
  return TorchCheckpoint::Make(
      std::move(state), std::make_unique<LegacyStorages>(std::move(file), std::move(extents)),
      file_bytes);
}

}  // namespace hippodrome
