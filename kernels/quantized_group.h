// Products with weights of 8 and of 4 bits, kI8 and kI4, defined for every backend.
//
// A row of x and a row of W are cut into groups of QuantizedGroup() neighbouring inputs. Each group
// is v_k = s q_k with integers q_k and a scale s of its own, and
//   (x W^T)_rc = sum_g s_x[r, g] s_w[c, g] sum_{k in g} q_x[r, k] q_w[c, k]
// whose inner sums are exact.
//   activations: s = max |v_k| / 127 in f32,  q_k = v_k (127 / max |v_k|) to the nearest integer
//   kI8 weights: s = max |v_k| / 127 in bf16, q_k = v_k (1 / s) to the nearest integer, at most 127
//   kI4 weights: s of kInt4Steps, q_k = v_k (1 / s) to the nearest integer of -8 to 7
// Ties go to the even integer. A group whose values are all below kQuantizedLeast in magnitude is
// zero; one that has a NaN or an infinity is NaN.
#ifndef HIPPODROME_KERNELS_QUANTIZED_GROUP_H_
#define HIPPODROME_KERNELS_QUANTIZED_GROUP_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

#include "kernels/dtype.h"

namespace hippodrome {

inline constexpr int64_t kInt8Group = 128;
inline constexpr int64_t kInt4Group = 32;
inline constexpr float kQuantizedLeast = 0x1p-100f;

constexpr bool IsQuantized(DType weights) { return weights == DType::kI8 || weights == DType::kI4; }

// Inputs of a group. A weight of kI8 takes 1.02 bytes, one of kI4 0.56. For 16 outputs a group of
// kI4 is 8 dot products of bytes, 4 loads and 12 masks and shifts, which all rows of a tile share,
// and for each row a conversion and two multiplications by scales. Inputs in groups of 128 would
// save one of these two, and W and x would differ. REQUIRES: IsQuantized(weights).
constexpr int64_t QuantizedGroup(DType weights) {
  return weights == DType::kI8 ? kInt8Group : kInt4Group;
}

// The number of groups of `in` inputs; the last one is filled up with zeros.
constexpr int64_t QuantizedGroups(int64_t in, DType weights) {
  return (in + QuantizedGroup(weights) - 1) / QuantizedGroup(weights);
}

// What the scale of a group of kI4 weights is chosen from: the bf16 numbers nearest to max |v_k| /
// c and -max |v_k| / c. It is the first with the least sum of (v_k - s q_k)^2. A range that clips
// the largest value often errs less in all, and the sign puts -8 where the values reach further. Of
// the demo decoders' perplexity it takes 0.5 % where max |v_k| / 7 takes 0.8 to 1.3 %.
inline constexpr float kInt4Steps[] = {8.25f, 7.75f, 7.25f, 6.75f, 6.25f};

// s, and what values are multiplied by to become q.
struct GroupScale {
  float scale = 0;
  float inverse = 0;
};

// Of a group of activations. largest: the maximum of |v_k|, or a NaN.
constexpr GroupScale ActivationScale(float largest) {
  if (!(largest <= std::numeric_limits<float>::max())) {
    return {std::numeric_limits<float>::quiet_NaN(), 0};
  }
  return largest < kQuantizedLeast ? GroupScale{} : GroupScale{largest / 127, 127 / largest};
}

inline int8_t ToInt8(float value, const GroupScale& scale) {
  if (scale.inverse == 0) return 0;
  return static_cast<int8_t>(std::clamp(std::nearbyint(value * scale.inverse), -127.0f, 127.0f));
}

// The integers of a group of finite weights, to `integers`, and their scale. REQUIRES:
// IsQuantized(weights), at most QuantizedGroup(weights) values.
BF16 QuantizeGroup(DType weights, std::span<const float> values, int8_t* integers);

// Two integers of 4 bits in a byte, each stored 8 higher; `high`: of the upper half.
constexpr uint8_t PackInt4(int low, int high) {
  return static_cast<uint8_t>((low + 8) | (high + 8) << 4);
}
constexpr int UnpackInt4(uint8_t packed, bool high) {
  return (high ? packed >> 4 : packed & 15) - 8;
}

}  // namespace hippodrome

#endif  // HIPPODROME_KERNELS_QUANTIZED_GROUP_H_
