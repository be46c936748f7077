#include "tools/convert/models/shape_map.h"

#include <algorithm>

#include "engine/base/status.h"
#include "tools/convert/printable.h"

namespace hippodrome {
namespace {

constexpr int64_t kLargestSize = int64_t{1} << 24;

}  // namespace

absl::StatusOr<std::vector<int64_t>> ShapeOf(const ShapeMap& shapes, const std::string& name,
                                             size_t rank) {
  const auto found = shapes.find(name);
  if (found == shapes.end()) return InvalidArgument("tensor '" + name + "' is missing");
  const std::vector<int64_t>& shape = found->second;
  const bool sane = std::all_of(shape.begin(), shape.end(),
                                [](int64_t size) { return size > 0 && size <= kLargestSize; });
  if (shape.size() != rank || !sane) {
    return InvalidArgument("tensor '" + name + "' has shape " + ShapeText(shape) + "; expected " +
                           std::to_string(rank) + " dimensions of 1 to " +
                           std::to_string(kLargestSize));
  }
  return shape;
}

absl::Status TakeShapes(const std::vector<TensorSpec>& specs, ShapeMap& left) {
  for (const TensorSpec& spec : specs) {
    const auto found = left.find(spec.name);
    if (found == left.end()) {
      return InvalidArgument("tensor '" + spec.name + "' is missing; expected shape " +
                             ShapeText(spec.shape));
    }
    if (found->second != spec.shape) {
      return InvalidArgument("tensor '" + spec.name + "' has shape " + ShapeText(found->second) +
                             "; expected " + ShapeText(spec.shape));
    }
    left.erase(found);
  }
  return absl::OkStatus();
}

absl::Status CheckNoneLeft(const ShapeMap& left, const std::string& model) {
  if (left.empty()) return absl::OkStatus();
  return InvalidArgument("tensor '" + Printable(left.begin()->first) + "' of shape " +
                         ShapeText(left.begin()->second) + " is not part of " + model);
}

int64_t Elements(const TensorSpec& spec) {
  int64_t product = 1;
  for (const int64_t size : spec.shape) product *= size;
  return product;
}

int64_t CountParameters(const std::vector<TensorSpec>& specs) {
  int64_t parameters = 0;
  for (const TensorSpec& spec : specs) {
    if (!spec.name.ends_with("rotary_emb.inv_freq")) parameters += Elements(spec);
  }
  return parameters;
}

absl::Status CheckExpansion(const std::vector<TensorSpec>& specs, uint64_t file_bytes) {
  uint64_t total = 0;
  for (const TensorSpec& spec : specs) {
    total += static_cast<uint64_t>(Elements(spec)) * sizeof(float);
  }
  if (total / 4 <= file_bytes) return absl::OkStatus();
  return InvalidArgument("its tensors would take " + std::to_string(total) +
                         " bytes, the file has " + std::to_string(file_bytes) +
                         "; expected at most 4 times the file");
}

}  // namespace hippodrome
