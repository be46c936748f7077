// Values of stored tensors, whatever their alignment.
#include <fmt/format.h>

#include <cstring>

#include "engine/base/one_line.h"
#include "engine/base/status.h"
#include "engine/checkpoint/safetensors.h"

namespace hippodrome {
namespace {

// Reads elements of type Stored and converts each.
template <typename Stored, typename Value, typename Convert>
std::vector<Value> ConvertEach(const TensorView& tensor, Convert convert) {
  std::vector<Value> values(tensor.data.size() / sizeof(Stored));
  for (size_t i = 0; i < values.size(); ++i) {
    Stored stored;
    std::memcpy(&stored, tensor.data.data() + i * sizeof(Stored), sizeof(Stored));
    values[i] = convert(stored);
  }
  return values;
}

absl::Status WrongDtype(const TensorView& tensor, const char* expected) {
  return InvalidArgument(fmt::format("tensor \"{}\" is {}, expected {}", OneLine(tensor.name),
                                     Name(tensor.dtype), expected));
}

}  // namespace

absl::StatusOr<std::vector<float>> ToFloats(const TensorView& tensor) {
  switch (tensor.dtype) {
    case DType::kF32:
      return ConvertEach<float, float>(tensor, [](float x) { return x; });
    case DType::kF64:
      return ConvertEach<double, float>(tensor, [](double x) { return static_cast<float>(x); });
    case DType::kBF16:
      return ConvertEach<BF16, float>(tensor, [](BF16 x) { return ToFloat(x); });
    case DType::kF16:
      return ConvertEach<uint16_t, float>(tensor, HalfToFloat);
    default:
      return WrongDtype(tensor, "F32, F16, BF16 or F64");
  }
}

absl::StatusOr<std::vector<int64_t>> ToIntegers(const TensorView& tensor) {
  switch (tensor.dtype) {
    case DType::kI64:
      return ConvertEach<int64_t, int64_t>(tensor, [](int64_t x) { return x; });
    case DType::kI32:
      return ConvertEach<int32_t, int64_t>(tensor, [](int32_t x) { return int64_t{x}; });
    default:
      return WrongDtype(tensor, "I64 or I32");
  }
}

}  // namespace hippodrome
