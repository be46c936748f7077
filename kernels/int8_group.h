// Products with weights of 8 bits, defined for every backend.
//
// A row of x and a row of W are cut into groups of kInt8Group neighbouring inputs. Each group is
// v_k = s q_k with integers |q_k| <= 127 and a scale s of its own, and
//   (x W^T)_rc = sum_g s_x[r, g] s_w[c, g] sum_{k in g} q_x[r, k] q_w[c, k]
// whose inner sums are exact.
//   activations: s = max |v_k| / 127 in f32,  q_k = v_k (127 / max |v_k|) to the nearest integer
//   weights:     s = max |v_k| / 127 in bf16, q_k = v_k (1 / s) to the nearest integer, at most 127
// Ties go to the even integer. A group whose values are all below kInt8Least in magnitude is zero;
// one that has a NaN or an infinity is NaN.
#ifndef HIPPODROME_KERNELS_INT8_GROUP_H_
#define HIPPODROME_KERNELS_INT8_GROUP_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/dtype.h"

namespace hippodrome {

inline constexpr int64_t kInt8Group = 128;
inline constexpr float kInt8Least = 0x1p-100f;

// The number of groups of `in` inputs; the last one is filled up with zeros.
constexpr int64_t Int8Groups(int64_t in) { return (in + kInt8Group - 1) / kInt8Group; }

// s, and what values are multiplied by to become q.
struct Int8Scale {
  float scale = 0;
  float inverse = 0;
};

// Of a group of activations. largest: the maximum of |v_k|, or a NaN.
inline Int8Scale ActivationScale(float largest) {
  if (!(largest <= std::numeric_limits<float>::max())) {
    return {std::numeric_limits<float>::quiet_NaN(), 0};
  }
  return largest < kInt8Least ? Int8Scale{} : Int8Scale{largest / 127, 127 / largest};
}

// Of a group of weights, which are finite.
inline Int8Scale WeightScale(float largest) {
  if (largest < kInt8Least) return {};
  const float scale = ToFloat(ToBF16(largest / 127));
  return {scale, 1 / scale};
}

inline int8_t ToInt8(float value, const Int8Scale& scale) {
  if (scale.inverse == 0) return 0;
  return static_cast<int8_t>(std::clamp(std::nearbyint(value * scale.inverse), -127.0f, 127.0f));
}

}  // namespace hippodrome

#endif  // HIPPODROME_KERNELS_INT8_GROUP_H_
