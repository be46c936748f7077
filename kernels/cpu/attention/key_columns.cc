#include "kernels/cpu/attention/key_columns.h"

#include <algorithm>
#include <cassert>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention/key_columns.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "kernels/cpu/base/bf16_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hippodrome::cpu {
namespace HWY_NAMESPACE {

// Four values of each of four keys, or one of one where there are no vectors of four.
#if HWY_TARGET == HWY_SCALAR
constexpr int64_t kTile = 1;

template <typename T>
HWY_INLINE void TransposeTile(const T* const* keys, int64_t e, int64_t stride, float* columns) {
  const HWY_CAPPED(float, 1) d;
  hn::StoreU(LoadWide(d, keys[0] + e), d, columns + e * stride);
}
#else
constexpr int64_t kTile = 4;

template <typename T>
HWY_INLINE void TransposeTile(const T* const* keys, int64_t e, int64_t stride, float* columns) {
  const hn::FixedTag<float, 4> d;
  const auto a = LoadWide(d, keys[0] + e);
  const auto b = LoadWide(d, keys[1] + e);
  const auto c = LoadWide(d, keys[2] + e);
  const auto f = LoadWide(d, keys[3] + e);
  const auto ab01 = hn::InterleaveLower(d, a, b);
  const auto ab23 = hn::InterleaveUpper(d, a, b);
  const auto cf01 = hn::InterleaveLower(d, c, f);
  const auto cf23 = hn::InterleaveUpper(d, c, f);
  float* const out = columns + e * stride;
  hn::StoreU(hn::ConcatLowerLower(d, cf01, ab01), d, out);
  hn::StoreU(hn::ConcatUpperUpper(d, cf01, ab01), d, out + stride);
  hn::StoreU(hn::ConcatLowerLower(d, cf23, ab23), d, out + 2 * stride);
  hn::StoreU(hn::ConcatUpperUpper(d, cf23, ab23), d, out + 3 * stride);
}
#endif

template <typename T>
void ToColumns(const T* const* keys, int64_t count, int64_t width, int64_t stride, float* columns) {
  const HWY_CAPPED(float, 1) one;
  const int64_t whole = width - width % kTile;
  int64_t i = 0;
  for (; i + kTile <= count; i += kTile) {
    for (int64_t e = 0; e < whole; e += kTile) TransposeTile(keys + i, e, stride, columns + i);
  }
  for (int64_t e = 0; e < width; ++e) {
    float* const column = columns + e * stride;
    for (int64_t k = e < whole ? i : 0; k < count; ++k) {
      hn::StoreU(LoadWide(one, keys[k] + e), one, column + k);
    }
    std::fill(column + count, column + stride, 0.0f);
  }
}

void ToColumnsF32(const float* const* keys, int64_t count, int64_t width, int64_t stride,
                  float* columns) {
  ToColumns(keys, count, width, stride, columns);
}
void ToColumnsBF16(const BF16* const* keys, int64_t count, int64_t width, int64_t stride,
                   float* columns) {
  ToColumns(keys, count, width, stride, columns);
}

}  // namespace HWY_NAMESPACE
}  // namespace hippodrome::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hippodrome::cpu {

HWY_EXPORT(ToColumnsF32);
HWY_EXPORT(ToColumnsBF16);

void KeysToColumns(const float* const* keys, int64_t count, int64_t width, int64_t stride,
                   float* columns) {
  assert(count <= stride);
  HWY_DYNAMIC_DISPATCH(ToColumnsF32)(keys, count, width, stride, columns);
}

void KeysToColumns(const BF16* const* keys, int64_t count, int64_t width, int64_t stride,
                   float* columns) {
  assert(count <= stride);
  HWY_DYNAMIC_DISPATCH(ToColumnsBF16)(keys, count, width, stride, columns);
}

}  // namespace hippodrome::cpu
#endif  // HWY_ONCE
