#include "tools/convert/checkpoint_source.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "engine/base/status.h"
#include "engine/checkpoint/safetensors.h"
#include "tools/convert/flax/flax_checkpoint.h"
#include "tools/convert/random_access_file.h"
#include "tools/convert/sharded_checkpoint.h"
#include "tools/convert/strided_reader.h"
#include "tools/convert/torch/torch_checkpoint.h"

namespace hippodrome {
namespace {

// A .safetensors file as a source of tensors.
class SafetensorsSource : public CheckpointSource {
 public:
  explicit SafetensorsSource(std::unique_ptr<SafetensorsFile> file) : file_(std::move(file)) {
    for (const auto& [name, view] : file_->tensors()) {
      views_.push_back(&view);
      file_bytes_ += view.data.size();
      tensors_.push_back({.name = name,
                          .shape = view.shape,
                          .type = Name(view.dtype),
                          .is_float = IsFloat(view.dtype),
                          .elements = static_cast<uint64_t>(view.elements())});
    }
  }

  absl::Status Read(size_t index, uint64_t first, std::span<float> out) override {
    TensorView part = *views_[index];
    const size_t width = SizeOf(part.dtype);
    part.data = part.data.subspan(first * width, out.size() * width);
    ConvertToFloat(part.dtype, part.data, out);
    file_->Drop(part);
    return absl::OkStatus();
  }

  bool Same(size_t a, size_t b) const override { return a == b; }

 private:
  std::unique_ptr<SafetensorsFile> file_;
  std::vector<const TensorView*> views_;
};

// Errors: as SafetensorsFile::Open.
absl::StatusOr<std::unique_ptr<CheckpointSource>> OpenSafetensorsSource(const std::string& path) {
  HIPPODROME_ASSIGN_OR_RETURN(std::unique_ptr<SafetensorsFile> file, SafetensorsFile::Open(path));
  return std::make_unique<SafetensorsSource>(std::move(file));
}

using Opener = absl::StatusOr<std::unique_ptr<CheckpointSource>> (*)(const std::string&);

// The pickled long 0x1950a86a20f9469cfc6c without the protocol byte before it.
constexpr std::string_view kLegacyMagic("\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 13);

// A map of 1 to 15 entries whose first key is a string of 1 to 31 bytes.
bool BeginsLikeFlax(std::string_view head) {
  return head.size() >= 2 && static_cast<uint8_t>(head[0]) >= 0x81 &&
         static_cast<uint8_t>(head[0]) <= 0x8f && static_cast<uint8_t>(head[1]) >= 0xa1 &&
         static_cast<uint8_t>(head[1]) <= 0xbf;
}

absl::StatusOr<Opener> ChooseOpener(const std::string& path) {
  HIPPODROME_ASSIGN_OR_RETURN(const auto file, RandomAccessFile::Open(path));
  std::string head(std::min<uint64_t>(file->size(), 15), '\0');
  HIPPODROME_RETURN_IF_ERROR(file->Read(0, std::as_writable_bytes(std::span(head))));
  if (path.ends_with(kIndexSuffix)) return &OpenShardedCheckpoint;
  if (path.ends_with(".safetensors")) return &OpenSafetensorsSource;
  if (path.ends_with(".msgpack")) return &OpenFlaxCheckpoint;
  if (head.starts_with("PK")) return &OpenZipCheckpoint;
  if (head.size() == 15 && head[0] == '\x80' && head.ends_with(kLegacyMagic)) {
    return &OpenLegacyCheckpoint;
  }
  if (BeginsLikeFlax(head)) return &OpenFlaxCheckpoint;
  return InvalidArgument(
      "is not a checkpoint; expected a file written by torch.save (zip or legacy), a .safetensors "
      "file, a Flax .msgpack file, the .index.json of several, or their directory");
}

}  // namespace

absl::StatusOr<std::string> FindCheckpoint(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return path;
  for (const char* name : {"model.safetensors", "pytorch_model.bin", "flax_model.msgpack"}) {
    for (const char* suffix : {"", kIndexSuffix}) {
      const std::filesystem::path file = std::filesystem::path(path) / (std::string(name) + suffix);
      if (std::filesystem::exists(file, error)) return file.string();
    }
  }
  const std::filesystem::path file = std::filesystem::path(path) / "model.pt";
  if (std::filesystem::exists(file, error)) return file.string();
  return NotFound(path +
                  ": has no checkpoint; expected model.safetensors, pytorch_model.bin, "
                  "flax_model.msgpack, the .index.json of one of them, or model.pt");
}

absl::StatusOr<std::unique_ptr<CheckpointSource>> OpenCheckpoint(const std::string& path) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string file, FindCheckpoint(path));
  absl::StatusOr<Opener> open = ChooseOpener(file);
  absl::StatusOr<std::unique_ptr<CheckpointSource>> source =
      open.ok() ? (*open)(file) : open.status();
  if (source.ok()) return source;
  const std::string message = Message(source.status());
  if (message.starts_with(file)) return source;
  return absl::Status(source.status().code(), file + ": " + message);
}

}  // namespace hippodrome
