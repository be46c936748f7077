#include "kernels/host_matrix.h"

#include <algorithm>
#include <cassert>
#include <span>

#include "kernels/quantized_group.h"

namespace hippodrome {
namespace {

template <typename T>
void WidenAll(const char* row, int64_t begin, std::span<float> values) {
  const T* from = reinterpret_cast<const T*>(row) + begin;
  std::transform(from, from + values.size(), values.begin(), [](T x) { return ToFloat(x); });
}

void WidenAll(const char* row, DType dtype, int64_t begin, std::span<float> values) {
  switch (dtype) {
    case DType::kBF16:
      return WidenAll<BF16>(row, begin, values);
    case DType::kF16:
      return WidenAll<Half>(row, begin, values);
    default:
      return WidenAll<float>(row, begin, values);
  }
}

void ReadIntegers(const char* row, DType dtype, int64_t begin, std::span<int8_t> integers) {
  if (dtype == DType::kI8) {
    std::copy_n(reinterpret_cast<const int8_t*>(row) + begin, integers.size(), integers.begin());
    return;
  }
  const auto* bytes = reinterpret_cast<const uint8_t*>(row) + begin / 2;
  for (size_t k = 0; k < integers.size(); ++k) {
    integers[k] = static_cast<int8_t>(UnpackInt4(bytes[k / 2], k % 2 != 0));
  }
}

}  // namespace

BF16 ReadGroup(const HostMatrix& matrix, int64_t row, int64_t group, DType weights,
               int8_t* integers) {
  assert(!IsQuantized(matrix.dtype) || matrix.dtype == weights);
  const auto* values =
      static_cast<const char*>(matrix.data) + row * RowBytes(matrix.dtype, matrix.cols);
  const int64_t size = QuantizedGroup(weights);
  const int64_t begin = group * size;
  const auto count = static_cast<size_t>(std::min(size, matrix.cols - begin));
  std::fill(integers + count, integers + size, int8_t{0});
  if (matrix.dtype == weights) {
    ReadIntegers(values, weights, begin, std::span(integers, count));
    return matrix.scales[row * QuantizedGroups(matrix.cols, weights) + group];
  }
  float widened[std::max(kInt8Group, kInt4Group)];
  WidenAll(values, matrix.dtype, begin, std::span(widened, count));
  return QuantizeGroup(weights, std::span(widened, count), integers);
}

}  // namespace hippodrome
