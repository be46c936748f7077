#include "tools/convert/torch/torch_storage.h"

#include <array>
#include <limits>
#include <string_view>

#include "engine/base/status.h"
#include "tools/convert/printable.h"

namespace hippodrome {
namespace {

using Kind = PickleNode::Kind;

constexpr size_t kMaxKeyLength = 64;

struct StorageType {
  std::string_view name;
  uint64_t element_size;
  std::optional<DType> dtype;
};

constexpr std::array<StorageType, 13> kTypes = {{
    {"FloatStorage", 4, DType::kF32},
    {"HalfStorage", 2, DType::kF16},
    {"BFloat16Storage", 2, DType::kBF16},
    {"DoubleStorage", 8, DType::kF64},
    {"LongStorage", 8, DType::kI64},
    {"IntStorage", 4, DType::kI32},
    {"ByteStorage", 1, DType::kU8},
    {"ShortStorage", 2, std::nullopt},
    {"CharStorage", 1, std::nullopt},
    {"BoolStorage", 1, std::nullopt},
    {"ComplexFloatStorage", 8, std::nullopt},
    {"ComplexDoubleStorage", 16, std::nullopt},
    {"UntypedStorage", 1, std::nullopt},
}};

absl::StatusOr<StorageType> FindType(const Pickle& pickle, const PickleNode& node) {
  if (node.kind == Kind::kGlobal && (node.module == "torch" || node.module == "torch.storage")) {
    for (const StorageType& type : kTypes) {
      if (type.name == node.text) return type;
    }
  }
  return InvalidArgument("a storage of type " + Describe(pickle, node) +
                         "; expected torch.FloatStorage or the like");
}

absl::Status CheckForm(const Pickle& pickle, const PickleNode& id) {
  const bool complete =
      id.kind == Kind::kTuple && (id.items.size() == 5 || id.items.size() == 6) &&
      pickle[id.items[0]].kind == Kind::kString && pickle[id.items[0]].text == "storage" &&
      pickle[id.items[2]].kind == Kind::kString && pickle[id.items[4]].kind == Kind::kInteger;
  if (!complete) {
    return InvalidArgument(
        "a malformed storage; expected ('storage', type, key, device, element count)");
  }
  if (id.items.size() == 6 && pickle[id.items[5]].kind != Kind::kNone) {
    return InvalidArgument("a storage that is a view of another, which is not supported");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TorchStorage> ReadTorchStorage(const Pickle& pickle, const PickleNode& node) {
  const PickleNode& id = pickle[node.arguments];
  HIPPODROME_RETURN_IF_ERROR(CheckForm(pickle, id));
  HIPPODROME_ASSIGN_OR_RETURN(const StorageType type, FindType(pickle, pickle[id.items[1]]));
  const std::string_view key = pickle[id.items[2]].text;
  const int64_t elements = pickle[id.items[4]].integer;
  if (key.empty() || key.size() > kMaxKeyLength || key.find('/') != key.npos) {
    return InvalidArgument("a storage key '" + Printable(key) + "'; expected 1 to " +
                           std::to_string(kMaxKeyLength) + " characters without '/'");
  }
  if (elements < 0 || elements > std::numeric_limits<int64_t>::max() / 16) {
    return InvalidArgument("storage '" + Printable(key) + "' of " + std::to_string(elements) +
                           " elements");
  }
  return TorchStorage{.key = std::string(key),
                      .type = std::string(type.name),
                      .dtype = type.dtype,
                      .element_size = type.element_size,
                      .elements = static_cast<uint64_t>(elements)};
}

absl::StatusOr<std::map<std::string, TorchStorage>> ListTorchStorages(const Pickle& pickle) {
  std::map<std::string, TorchStorage> storages;
  for (const PickleNode& node : pickle.nodes) {
    if (node.kind != Kind::kPersistent) continue;
    HIPPODROME_ASSIGN_OR_RETURN(const TorchStorage storage, ReadTorchStorage(pickle, node));
    const TorchStorage& first = storages.try_emplace(storage.key, storage).first->second;
    if (first.type != storage.type || first.elements != storage.elements) {
      return InvalidArgument("storage '" + Printable(storage.key) + "' is described in two ways");
    }
  }
  return storages;
}

}  // namespace hippodrome
