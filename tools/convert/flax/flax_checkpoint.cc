#include "tools/convert/flax/flax_checkpoint.h"

#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "kernels/dtype.h"
#include "tools/convert/flax/msgpack_reader.h"
#include "tools/convert/printable.h"
#include "tools/convert/random_access_file.h"
#include "tools/convert/strided_reader.h"

namespace hippodrome {
namespace {

using ItemKind = MsgpackItem::Kind;

// ---- The tree ----------------------------------------------------------------------------------

// An array of the file, without its values.
struct FlaxArray {
  std::string name;  // "a/b/kernel"
  std::vector<int64_t> shape;
  std::string type;            // "float32"
  std::optional<DType> dtype;  // when it is one of floats; then the bytes fit the shape
  uint64_t elements = 0;
  uint64_t offset = 0;  // of its bytes in the file
};

constexpr size_t kMostKeys = 65536;
constexpr int kMostLevels = 32;
constexpr size_t kLongestName = 512;
constexpr uint64_t kMostDimensions = 16;
constexpr uint64_t kLongestType = 32;

constexpr std::pair<const char*, DType> kFloatTypes[] = {{"float32", DType::kF32},
                                                         {"float16", DType::kF16},
                                                         {"bfloat16", DType::kBF16},
                                                         {"float64", DType::kF64}};

std::optional<DType> FloatType(const std::string& name) {
  for (const auto& [type, dtype] : kFloatTypes) {
    if (name == type) return dtype;
  }
  return std::nullopt;
}

class TreeReader {
 public:
  explicit TreeReader(const RandomAccessFile& file) : file_(file), reader_(file) {}

  absl::StatusOr<std::vector<FlaxArray>> Read() {
    HIPPODROME_ASSIGN_OR_RETURN(const MsgpackItem root, Expect(ItemKind::kMap, "the file"));
    HIPPODROME_RETURN_IF_ERROR(ReadMap(root.size, "", 1));
    if (reader_.position() == file_.size()) return std::move(arrays_);
    return InvalidArgument("the tree ends at byte " + std::to_string(reader_.position()) +
                           "; expected the end of the file, " + std::to_string(file_.size()));
  }

 private:
  // `what`: for the message.
  absl::StatusOr<MsgpackItem> Expect(ItemKind kind, const std::string& what) {
    const uint64_t position = reader_.position();
    HIPPODROME_ASSIGN_OR_RETURN(const MsgpackItem item, reader_.Next());
    if (item.kind == kind) return item;
    return InvalidArgument(what + " is " + Describe(item.kind) + " at byte " +
                           std::to_string(position) + "; expected " + Describe(kind));
  }

  absl::Status ReadMap(uint64_t pairs, const std::string& folder, int level) {
    if (level > kMostLevels) {
      return InvalidArgument("'" + Printable(folder) + "' lies deeper than " +
                             std::to_string(kMostLevels) + " levels");
    }
    std::set<std::string> seen;
    for (uint64_t i = 0; i < pairs; ++i) {
      HIPPODROME_ASSIGN_OR_RETURN(const std::string key, ReadKey(folder));
      const std::string name = folder + key;
      if (key == "__msgpack_chunked_array__") {
        return InvalidArgument("'" + Printable(folder) +
                               "' is an array in chunks; expected arrays of up to 2^30 bytes");
      }
      if (!seen.insert(key).second) {
        return InvalidArgument("'" + Printable(name) + "' is there twice");
      }
      HIPPODROME_RETURN_IF_ERROR(ReadValue(name, level));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> ReadKey(const std::string& folder) {
    HIPPODROME_ASSIGN_OR_RETURN(const MsgpackItem item,
                                Expect(ItemKind::kString, "a key in '" + Printable(folder) + "'"));
    if (++keys_ > kMostKeys) {
      return InvalidArgument("more than " + std::to_string(kMostKeys) + " keys");
    }
    if (folder.size() + item.size > kLongestName) {
      return InvalidArgument("a name in '" + Printable(folder) + "' is longer than " +
                             std::to_string(kLongestName) + " bytes");
    }
    return reader_.Text(item.size);
  }

  absl::Status ReadValue(const std::string& name, int level) {
    HIPPODROME_ASSIGN_OR_RETURN(const MsgpackItem item, reader_.Next());
    if (item.kind == ItemKind::kMap) return ReadMap(item.size, name + "/", level + 1);
    if (item.kind == ItemKind::kExtension && item.extension == kFlaxArray) {
      return ReadArray(name, item.size);
    }
    const std::string type =
        item.kind == ItemKind::kExtension ? " of type " + std::to_string(item.extension) : "";
    return InvalidArgument("'" + Printable(name) + "' is " + Describe(item.kind) + type +
                           "; expected a map or an array (extension of type 1)");
  }

  absl::Status ReadArray(const std::string& name, uint64_t size) {
    const uint64_t end = reader_.position() + size;
    const std::string what = "array '" + Printable(name) + "'";
    FlaxArray array{.name = name};
    HIPPODROME_ASSIGN_OR_RETURN(const MsgpackItem triple, Expect(ItemKind::kArray, what));
    if (triple.size != 3) {
      return InvalidArgument(what + " has " + std::to_string(triple.size) +
                             " parts; expected shape, type and bytes");
    }
    HIPPODROME_RETURN_IF_ERROR(ReadShape(what, array));
    HIPPODROME_RETURN_IF_ERROR(ReadType(what, array));
    HIPPODROME_ASSIGN_OR_RETURN(const MsgpackItem bytes,
                                Expect(ItemKind::kBinary, "the data of " + what));
    array.offset = reader_.position();
    reader_.Skip(bytes.size);
    if (reader_.position() != end) {
      return InvalidArgument(what + " ends at byte " + std::to_string(reader_.position()) +
                             "; expected " + std::to_string(end));
    }
    HIPPODROME_RETURN_IF_ERROR(CheckBytes(what, bytes.size, array));
    arrays_.push_back(std::move(array));
    return absl::OkStatus();
  }

  absl::Status ReadShape(const std::string& what, FlaxArray& array) {
    HIPPODROME_ASSIGN_OR_RETURN(const MsgpackItem shape,
                                Expect(ItemKind::kArray, "the shape of " + what));
    if (shape.size > kMostDimensions) {
      return InvalidArgument(what + " has " + std::to_string(shape.size) +
                             " dimensions; expected at most " + std::to_string(kMostDimensions));
    }
    array.elements = 1;
    for (uint64_t i = 0; i < shape.size; ++i) {
      HIPPODROME_ASSIGN_OR_RETURN(const MsgpackItem dimension,
                                  Expect(ItemKind::kInteger, "a dimension of " + what));
      const int64_t most = static_cast<int64_t>(file_.size());  // bytes, no fewer than elements
      if (dimension.integer < 0 || dimension.integer > most) {
        return InvalidArgument(what + " has a dimension of " + std::to_string(dimension.integer) +
                               "; expected one from 0 to " + std::to_string(most));
      }
      array.shape.push_back(dimension.integer);
      if (__builtin_mul_overflow(array.elements, static_cast<uint64_t>(dimension.integer),
                                 &array.elements)) {
        return InvalidArgument(what + " has shape " + ShapeText(array.shape) +
                               ", which is too large");
      }
    }
    return absl::OkStatus();
  }

  absl::Status ReadType(const std::string& what, FlaxArray& array) {
    HIPPODROME_ASSIGN_OR_RETURN(const MsgpackItem type,
                                Expect(ItemKind::kString, "the type of " + what));
    if (type.size > kLongestType) {
      return InvalidArgument("the name of the type of " + what + " has " +
                             std::to_string(type.size) + " bytes; expected at most " +
                             std::to_string(kLongestType));
    }
    HIPPODROME_ASSIGN_OR_RETURN(array.type, reader_.Text(type.size));
    array.type = Printable(array.type);
    array.dtype = FloatType(array.type);
    return absl::OkStatus();
  }

  static absl::Status CheckBytes(const std::string& what, uint64_t bytes, const FlaxArray& array) {
    if (!array.dtype.has_value()) return absl::OkStatus();  // it cannot be read
    const uint64_t width = SizeOf(*array.dtype);
    if (bytes % width == 0 && bytes / width == array.elements) return absl::OkStatus();
    return InvalidArgument(what + " has " + std::to_string(bytes) + " bytes; expected shape " +
                           ShapeText(array.shape) + " of " + array.type);
  }

  const RandomAccessFile& file_;
  MsgpackReader reader_;
  std::vector<FlaxArray> arrays_;
  size_t keys_ = 0;
};

// The arrays in the order of the file.
absl::StatusOr<std::vector<FlaxArray>> ReadFlaxTree(const RandomAccessFile& file) {
  return TreeReader(file).Read();
}

// ---- The checkpoint ----------------------------------------------------------------------------

class FlaxCheckpoint : public CheckpointSource {
 public:
  FlaxCheckpoint(std::unique_ptr<RandomAccessFile> file, std::vector<FlaxArray> arrays)
      : file_(std::move(file)), arrays_(std::move(arrays)) {
    flax_ = true;
    file_bytes_ = file_->size();
    for (const FlaxArray& array : arrays_) {
      tensors_.push_back({.name = array.name,
                          .shape = array.shape,
                          .type = array.type,
                          .is_float = array.dtype.has_value(),
                          .elements = array.elements});
    }
  }

  absl::Status Read(size_t index, uint64_t first, std::span<float> out) override {
    const FlaxArray& array = arrays_[index];
    const size_t width = SizeOf(*array.dtype);
    buffer_.resize(out.size() * width);
    HIPPODROME_RETURN_IF_ERROR(file_->Read(array.offset + first * width, buffer_));
    ConvertToFloat(*array.dtype, buffer_, out);
    return absl::OkStatus();
  }

  bool Same(size_t a, size_t b) const override { return a == b; }

 private:
  std::unique_ptr<RandomAccessFile> file_;
  std::vector<FlaxArray> arrays_;
  std::vector<std::byte> buffer_;
};

}  // namespace

std::string FlaxType(DType dtype) {
  for (const auto& [type, same] : kFloatTypes) {
    if (dtype == same) return type;
  }
  return "";
}

absl::StatusOr<std::unique_ptr<CheckpointSource>> OpenFlaxCheckpoint(const std::string& path) {
  HIPPODROME_ASSIGN_OR_RETURN(auto file, RandomAccessFile::Open(path));
  HIPPODROME_ASSIGN_OR_RETURN(std::vector<FlaxArray> arrays, ReadFlaxTree(*file));
  return std::make_unique<FlaxCheckpoint>(std::move(file), std::move(arrays));
}

}  // namespace hippodrome
