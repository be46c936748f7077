// One tensor: torch._utils._rebuild_tensor_v2(storage, offset, shape, strides, ..).
#include "tools/convert/torch/torch_tensor.h"

#include "engine/base/status.h"
#include "tools/convert/printable.h"
#include "tools/convert/torch/torch_storage.h"

namespace hippodrome {
namespace {

using Kind = PickleNode::Kind;

constexpr size_t kMaxRank = 8;

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

}  // namespace

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

bool IsTorchTensor(const Pickle& pickle, const PickleNode& node) {
  return IsCallTo(pickle, node, "_rebuild_tensor_v2") ||
         IsCallTo(pickle, node, "_rebuild_parameter");
}

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

}  // namespace hippodrome
