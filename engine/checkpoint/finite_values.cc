#include "engine/checkpoint/finite_values.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "engine/base/status.h"

namespace hippodrome {
namespace {

// Numbers of a type are not finite where all bits of the exponent are set. Blocks without a branch
// are checked as fast as memory is read. Any alignment.
template <typename Bits, Bits kExponent>
absl::Status CheckBits(const std::string& name, const std::byte* data, size_t count) {
  constexpr size_t kBlock = 1024;
  Bits block[kBlock];
  for (size_t first = 0; first < count; first += kBlock) {
    const size_t size = std::min(kBlock, count - first);
    std::memcpy(block, data + first * sizeof(Bits), size * sizeof(Bits));
    Bits bad = 0;
    for (size_t i = 0; i < size; ++i) {
      bad |= static_cast<Bits>((block[i] & kExponent) == kExponent);
    }
    if (bad == 0) continue;
    size_t i = 0;
    while ((block[i] & kExponent) != kExponent) ++i;
    return InvalidArgument(name + ": element " + std::to_string(first + i) +
                           " is not a finite number");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckFinite(const TensorView& tensor) {
  if (tensor.dtype == DType::kF64) {  // what f32 has no room for is infinite
    HIPPODROME_ASSIGN_OR_RETURN(const std::vector<float> values, ToFloats(tensor));
    return CheckBits<uint32_t, 0x7f800000>(
        tensor.name, reinterpret_cast<const std::byte*>(values.data()), values.size());
  }
  const auto* data = reinterpret_cast<const std::byte*>(tensor.data.data());
  const auto count = static_cast<size_t>(tensor.elements());
  switch (tensor.dtype) {
    case DType::kF32:
      return CheckBits<uint32_t, 0x7f800000>(tensor.name, data, count);
    case DType::kBF16:
      return CheckBits<uint16_t, 0x7f80>(tensor.name, data, count);
    case DType::kF16:
      return CheckBits<uint16_t, 0x7c00>(tensor.name, data, count);
    default:
      return absl::OkStatus();
  }
}

absl::StatusOr<HostFloats> ReadFinite(WeightsSource& source, const std::string& name,
                                      const std::vector<int64_t>& shape) {
  HIPPODROME_ASSIGN_OR_RETURN(HostFloats values, ReadFloats(source, name, shape));
  const std::span<const float> floats = values;
  HIPPODROME_RETURN_IF_ERROR((CheckBits<uint32_t, 0x7f800000>(
      name, reinterpret_cast<const std::byte*>(floats.data()), floats.size())));
  return values;
}

}  // namespace hippodrome
