// Any bytes are a valid safetensors file or an error; what is accepted lies within the bytes.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "engine/checkpoint/safetensors.h"

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

}  // namespace
}  // namespace hippodrome

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> file = std::as_bytes(std::span(data, size));
  const auto index = hippodrome::ParseSafetensors(file);
  if (!index.ok()) return 0;
  for (const auto& [name, tensor] : index->tensors) hippodrome::Touch(tensor, file);
  return 0;
}
