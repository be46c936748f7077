#include "kernels/quantized_group.h"

#include <cassert>

namespace hippodrome {
namespace {

// A group with zeros behind it.
using Int4Values = float[kInt4Group];

// `value`, of less than 2^22 in magnitude, to the nearest integer: the sum has no room for a
// fraction. Vectors of the least processors have no rounding.
float Nearest(float value) {
  constexpr float kNoFraction = 0x1.8p23f;
  return (value + kNoFraction) - kNoFraction;
}

float ToInt4(float value, float inverse) {
  return std::min(std::max(Nearest(value * inverse), -8.0f), 7.0f);
}

// The sum of (v_k - s q_k)^2, in eight chains.
float SquaredError(const Int4Values& values, float scale) {
  constexpr int64_t kChains = 8;
  const float inverse = 1 / scale;
  float sums[kChains] = {};
  for (int64_t k = 0; k < kInt4Group; k += kChains) {
    for (int64_t i = 0; i < kChains; ++i) {
      const float error = values[k + i] - scale * ToInt4(values[k + i], inverse);
      sums[i] += error * error;
    }
  }
  float sum = 0;
  for (const float part : sums) sum += part;
  return sum;
}

float ChooseInt4Scale(const Int4Values& values, float largest) {
  float best = 0;
  float least = std::numeric_limits<float>::infinity();
  for (const float step : kInt4Steps) {
    for (const float signed_step : {step, -step}) {
      const float scale = ToFloat(ToBF16(largest / signed_step));
      const float error = SquaredError(values, scale);
      if (error >= least) continue;
      least = error;
      best = scale;
    }
  }
  return best;
}

BF16 QuantizeInt4(std::span<const float> group, float largest, int8_t* integers) {
  // Squares of the values themselves might overflow or vanish.
  Int4Values values = {};
  const float unit = std::ldexp(1.0f, std::ilogb(largest));
  for (size_t k = 0; k < group.size(); ++k) values[k] = group[k] / unit;
  const float scale = ChooseInt4Scale(values, largest / unit);
  for (size_t k = 0; k < group.size(); ++k) {
    integers[k] = static_cast<int8_t>(ToInt4(values[k], 1 / scale));
  }
  return ToBF16(scale * unit);
}

BF16 QuantizeInt8(std::span<const float> group, float largest, int8_t* integers) {
  const BF16 stored = ToBF16(largest / 127);
  const GroupScale scale = {ToFloat(stored), 1 / ToFloat(stored)};
  for (size_t k = 0; k < group.size(); ++k) integers[k] = ToInt8(group[k], scale);
  return stored;
}

}  // namespace

BF16 QuantizeGroup(DType weights, std::span<const float> values, int8_t* integers) {
  assert(values.size() <= static_cast<size_t>(QuantizedGroup(weights)));
  float largest = 0;
  for (const float value : values) largest = std::max(largest, std::abs(value));
  if (largest < kQuantizedLeast) {
    std::fill_n(integers, values.size(), int8_t{0});
    return {};
  }
  return weights == DType::kI8 ? QuantizeInt8(values, largest, integers)
                               : QuantizeInt4(values, largest, integers);
}

}  // namespace hippodrome
