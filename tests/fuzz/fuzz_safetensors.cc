// Any bytes are a valid safetensors file or an error; what is accepted lies within the bytes, and
// each matrix of it has values or an error.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "engine/checkpoint/safetensors.h"
#include "engine/checkpoint/stored_matrix.h"
#include "engine/checkpoint/weights_source.h"
#include "kernels/quantized_group.h"

namespace hippodrome {
namespace {

void Touch(const TensorView& tensor, std::span<const std::byte> file) {
  const bool inside = tensor.data.data() >= file.data() &&
                      tensor.data.data() + tensor.data.size() <= file.data() + file.size();
  if (!inside) std::abort();
  const size_t elements = static_cast<size_t>(tensor.elements());
  if (elements * SizeOf(tensor.dtype) != tensor.data.size()) std::abort();
  const auto floats = ToFloats(tensor);
  if (floats.ok() && floats->size() != elements) std::abort();
  const auto integers = ToIntegers(tensor);
  if (integers.ok() && integers->size() != elements) std::abort();
}

// The tensors of a file.
class IndexWeights final : public WeightsSource {
 public:
  explicit IndexWeights(const SafetensorsIndex& index) : index_(index) {}

  absl::StatusOr<TensorView> Get(const std::string& name,
                                 const std::vector<int64_t>& shape) override {
    const auto found = index_.tensors.find(name);
    if (found == index_.tensors.end() || found->second.shape != shape) {
      return absl::NotFoundError(name);
    }
    return found->second;
  }
  DType TypeOf(const std::string& name) const override { return index_.tensors.at(name).dtype; }
  void Drop(const TensorView& /*tensor*/) override {}

 private:
  const SafetensorsIndex& index_;
};

void TouchMatrix(const SafetensorsIndex& index, const TensorView& tensor) {
  if (tensor.shape.size() != 2 || tensor.elements() == 0) return;
  IndexWeights source(index);
  const int64_t cols = tensor.shape[1] * (tensor.dtype == DType::kU8 ? 2 : 1);
  const auto matrix = GetMatrix(source, tensor.name, tensor.shape[0], cols);
  if (!matrix.ok() || !IsQuantized(matrix->dtype)) return;
  const auto values = Dequantize(*matrix);
  if (!values.ok()) return;
  for (const float value : *values) {
    if (!std::isfinite(value)) std::abort();
  }
}

}  // namespace
}  // namespace hippodrome

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> file = std::as_bytes(std::span(data, size));
  const auto index = hippodrome::ParseSafetensors(file);
  if (!index.ok()) return 0;
  for (const auto& [name, tensor] : index->tensors) {
    hippodrome::Touch(tensor, file);
    hippodrome::TouchMatrix(*index, tensor);
  }
  return 0;
}
