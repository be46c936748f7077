#include "tools/convert/torch/torch_state_dict.h"

#include <array>
#include <limits>
#include <set>
#include <string_view>

#include "engine/base/status.h"
#include "tools/convert/printable.h"

namespace hippodrome {
namespace {

using Kind = PickleNode::Kind;

constexpr size_t kMaxKeyLength = 64;
constexpr size_t kMaxNameLength = 256;
constexpr size_t kMaxRank = 8;

// ---- Storages ----------------------------------------------------------------------------------

// Storages are the persistent ids of the pickle.
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

// Reads ('storage', torch.XStorage, key, device, elements[, None]). `node` is a kPersistent.
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

// ---- Tensors -----------------------------------------------------------------------------------

bool IsCallTo(const Pickle& pickle, const PickleNode& node, std::string_view name) {
  if (node.kind != Kind::kObject) return false;
  const PickleNode& callable = pickle[node.callable];
  return callable.kind == Kind::kGlobal && callable.module == "torch._utils" &&
         callable.text == name && pickle[node.arguments].kind == Kind::kTuple;
}

absl::StatusOr<std::vector<int64_t>> Sizes(const Pickle& pickle, PickleId id, const char* what) {
  const PickleNode& tuple = pickle[id];
  if (tuple.kind != Kind::kTuple || tuple.items.size() > kMaxRank) {
    return InvalidArgument(std::string("its ") + what + " is not a tuple of at most 8 integers");
  }
  std::vector<int64_t> sizes;
  for (const PickleId item : tuple.items) {
    const PickleNode& size = pickle[item];
    if (size.kind != Kind::kInteger || size.integer < 0) {
      return InvalidArgument(std::string("its ") + what + " holds " + Describe(pickle, size) +
                             "; expected integers >= 0");
    }
    sizes.push_back(size.integer);
  }
  return sizes;
}

// Overflow-safe: is the last element of the view inside the storage?
absl::Status CheckBounds(const TorchTensor& tensor) {
  uint64_t elements = 1;
  uint64_t last = tensor.offset;
  bool overflow = false;
  bool empty = false;
  for (size_t k = 0; k < tensor.shape.size(); ++k) {
    const auto size = static_cast<uint64_t>(tensor.shape[k]);
    if (size == 0) {
      empty = true;
      continue;
    }
    const auto stride = static_cast<uint64_t>(tensor.strides[k]);
    uint64_t reach = 0;
    overflow |= __builtin_mul_overflow(size - 1, stride, &reach);
    overflow |= __builtin_add_overflow(last, reach, &last);
    overflow |= __builtin_mul_overflow(elements, size, &elements);
  }
  constexpr uint64_t kMostElements = uint64_t{1} << 56;
  if (overflow || elements > kMostElements) {
    return InvalidArgument("shape " + ShapeText(tensor.shape) + " with strides " +
                           ShapeText(tensor.strides) + " overflows");
  }
  if (!empty && last >= tensor.storage.elements) {
    return InvalidArgument(
        "shape " + ShapeText(tensor.shape) + " with strides " + ShapeText(tensor.strides) +
        " at offset " + std::to_string(tensor.offset) + " reaches element " + std::to_string(last) +
        " of a storage of " + std::to_string(tensor.storage.elements));
  }
  return absl::OkStatus();
}

// True for a call of torch._utils._rebuild_tensor_v2 or _rebuild_parameter.
bool IsTorchTensor(const Pickle& pickle, const PickleNode& node) {
  return IsCallTo(pickle, node, "_rebuild_tensor_v2") ||
         IsCallTo(pickle, node, "_rebuild_parameter");
}

// Reads such a call: (storage, offset, shape, strides, ..). The name stays empty; the view lies
// inside its storage.
absl::StatusOr<TorchTensor> ReadTorchTensor(const Pickle& pickle, const PickleNode& node) {
  if (IsCallTo(pickle, node, "_rebuild_parameter")) {
    const PickleNode& arguments = pickle[node.arguments];
    const PickleNode* data = arguments.items.empty() ? nullptr : &pickle[arguments.items[0]];
    if (data == nullptr || !IsCallTo(pickle, *data, "_rebuild_tensor_v2")) {
      return InvalidArgument("a parameter without a tensor");
    }
    return ReadTorchTensor(pickle, *data);
  }
  const std::vector<PickleId>& arguments = pickle[node.arguments].items;
  if (arguments.size() < 4 || pickle[arguments[0]].kind != Kind::kPersistent ||
      pickle[arguments[1]].kind != Kind::kInteger) {
    return InvalidArgument("expected a tensor of (storage, offset, shape, strides, ..)");
  }
  TorchTensor tensor;
  HIPPODROME_ASSIGN_OR_RETURN(tensor.storage, ReadTorchStorage(pickle, pickle[arguments[0]]));
  const int64_t offset = pickle[arguments[1]].integer;
  if (offset < 0) return InvalidArgument("its offset is " + std::to_string(offset));
  tensor.offset = static_cast<uint64_t>(offset);
  HIPPODROME_ASSIGN_OR_RETURN(tensor.shape, Sizes(pickle, arguments[2], "shape"));
  HIPPODROME_ASSIGN_OR_RETURN(tensor.strides, Sizes(pickle, arguments[3], "strides"));
  if (tensor.shape.size() != tensor.strides.size()) {
    return InvalidArgument("it has " + std::to_string(tensor.shape.size()) + " dimensions and " +
                           std::to_string(tensor.strides.size()) + " strides");
  }
  HIPPODROME_RETURN_IF_ERROR(CheckBounds(tensor));
  return tensor;
}

// ---- The dict ----------------------------------------------------------------------------------

// A dict, or what collections.OrderedDict() gives.
bool IsDict(const Pickle& pickle, const PickleNode& node) {
  if (node.kind == Kind::kDict) return true;
  if (node.kind != Kind::kObject) return false;
  const PickleNode& callable = pickle[node.callable];
  return callable.kind == Kind::kGlobal && callable.module == "collections" &&
         callable.text == "OrderedDict";
}

// The items of a dict as key, value, ..; OrderedDict([(key, value), ..]) carries them as arguments.
std::vector<PickleId> DictItems(const Pickle& pickle, const PickleNode& dict) {
  std::vector<PickleId> items = dict.items;
  if (dict.kind != Kind::kObject) return items;
  const PickleNode& arguments = pickle[dict.arguments];
  if (arguments.items.size() != 1) return items;
  for (const PickleId id : pickle[arguments.items[0]].items) {
    const PickleNode& pair = pickle[id];
    if (pair.items.size() == 2) items.insert(items.end(), pair.items.begin(), pair.items.end());
  }
  return items;
}

// The dict under `key`, or null.
const PickleNode* FindDict(const Pickle& pickle, const PickleNode& dict, std::string_view key) {
  const PickleNode* value = pickle.Find(dict, key);
  return value != nullptr && IsDict(pickle, *value) ? value : nullptr;
}

// The dict that a wrapper holds, or null where `dict` wraps nothing.
absl::StatusOr<const PickleNode*> FindWrapped(const Pickle& pickle, const PickleNode& dict,
                                              bool& lightning) {
  const PickleNode* state = FindDict(pickle, dict, "state_dict");
  if (pickle.Find(dict, "pytorch-lightning_version") != nullptr) {
    lightning = true;
    if (state != nullptr) return state;
    const PickleNode* other = pickle.Find(dict, "state_dict");
    return InvalidArgument("a Lightning checkpoint whose 'state_dict' is " +
                           (other == nullptr ? "missing" : Describe(pickle, *other)) +
                           "; expected a dict of tensors (nothing was executed)");
  }
  const PickleNode* model = FindDict(pickle, dict, "model");
  if (state != nullptr && model != nullptr) {
    return InvalidArgument(
        "the file holds dicts under 'state_dict' and under 'model'; expected one of them");
  }
  return state != nullptr ? state : model;
}

// The dict of tensors inside what training scripts put around it.
absl::StatusOr<const PickleNode*> Unwrap(const Pickle& pickle, bool& lightning) {
  constexpr int kMostWrappers = 8;  // a dict may hold itself
  const PickleNode* dict = &pickle[pickle.root];
  if (!IsDict(pickle, *dict)) {
    return InvalidArgument("the file holds " + Describe(pickle, *dict) +
                           "; expected a state_dict (a dict of tensors) or a Lightning checkpoint "
                           "(nothing was executed)");
  }
  for (int wrappers = 0; wrappers <= kMostWrappers; ++wrappers) {
    HIPPODROME_ASSIGN_OR_RETURN(const PickleNode* const inner,
                                FindWrapped(pickle, *dict, lightning));
    if (inner == nullptr) return dict;
    dict = inner;
  }
  return InvalidArgument("the state_dict lies in more than " + std::to_string(kMostWrappers) +
                         " dicts named 'state_dict' or 'model'");
}

absl::StatusOr<std::string> ReadName(const Pickle& pickle, const PickleNode& key) {
  if (key.kind != Kind::kString || key.text.empty() || key.text.size() > kMaxNameLength) {
    return InvalidArgument("state_dict: a name is " + Describe(pickle, key) +
                           "; expected a string of 1 to " + std::to_string(kMaxNameLength) +
                           " bytes");
  }
  return std::string(key.text);
}

// Plain values beside the model are harmless; the result of an unknown call is not accepted.
bool IsIgnorable(const TorchStateDict& state, const std::string& name, const PickleNode& value) {
  return state.lightning && name.rfind("model.", 0) != 0 && value.kind != Kind::kObject;
}

absl::Status AddEntry(const Pickle& pickle, const PickleNode& key, const PickleNode& value,
                      TorchStateDict& state) {
  HIPPODROME_ASSIGN_OR_RETURN(const std::string name, ReadName(pickle, key));
  if (!IsTorchTensor(pickle, value)) {
    if (IsIgnorable(state, name, value)) return absl::OkStatus();
    return InvalidArgument("state_dict entry '" + Printable(name) + "' is " +
                           Describe(pickle, value) + "; expected a tensor (nothing was executed)");
  }
  absl::StatusOr<TorchTensor> tensor = ReadTorchTensor(pickle, value);
  if (!tensor.ok()) {
    return InvalidArgument("tensor '" + Printable(name) + "': " + Message(tensor.status()));
  }
  tensor->name = name;
  state.tensors.push_back(*std::move(tensor));
  return absl::OkStatus();
}

}  // namespace

std::string TorchStorageType(DType dtype) {
  for (const StorageType& type : kTypes) {
    if (type.dtype == dtype) return std::string(type.name);
  }
  return "";
}

uint64_t TorchTensor::elements() const {
  uint64_t product = 1;
  for (const int64_t size : shape) product *= static_cast<uint64_t>(size);
  return product;
}

bool TorchTensor::contiguous() const {
  int64_t expected = 1;
  for (size_t k = shape.size(); k-- > 0;) {
    if (shape[k] != 1 && strides[k] != expected) return false;
    expected *= shape[k];
  }
  return true;
}

std::vector<int64_t> RowMajorStrides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t k = shape.size(); k-- > 1;) strides[k - 1] = strides[k] * shape[k];
  return strides;
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

absl::StatusOr<TorchStateDict> ReadTorchStateDict(const Pickle& pickle) {
  TorchStateDict state;
  HIPPODROME_ASSIGN_OR_RETURN(const PickleNode* const dict, Unwrap(pickle, state.lightning));
  const std::vector<PickleId> items = DictItems(pickle, *dict);
  if (items.size() % 2 != 0) return InvalidArgument("state_dict: a name without a value");
  std::set<std::string_view> names;
  for (size_t i = 0; i < items.size(); i += 2) {
    const PickleNode& key = pickle[items[i]];
    if (key.kind == Kind::kString && !names.insert(key.text).second) {
      return InvalidArgument("state_dict: the name '" + Printable(key.text) + "' occurs twice");
    }
    HIPPODROME_RETURN_IF_ERROR(AddEntry(pickle, key, pickle[items[i + 1]], state));
  }
  return state;
}

}  // namespace hippodrome
