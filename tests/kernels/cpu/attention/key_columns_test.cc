#include "kernels/cpu/attention/key_columns.h"

#include <gtest/gtest.h>

#include <type_traits>
#include <vector>

#include "tests/kernels/cpu/random_matrix.h"

namespace hippodrome::cpu::key_columns_test {
namespace {

float Value(float x) { return x; }
float Value(BF16 x) { return ToFloat(x); }

template <typename T>
void Check(int64_t count, int64_t width, int64_t stride) {
  const std::vector<float> values = RandomValues(count * (width + 3), 5);
  std::vector<T> rows;
  for (const float value : values) {
    if constexpr (std::is_same_v<T, BF16>) {
      rows.push_back(ToBF16(value));
    } else {
      rows.push_back(value);
    }
  }
  std::vector<const T*> keys;
  for (int64_t i = count; i-- > 0;) keys.push_back(rows.data() + i * (width + 3));
  std::vector<float> columns(width * stride + 1, 7.0f);
  KeysToColumns(keys.data(), count, width, stride, columns.data());
  for (int64_t e = 0; e < width; ++e) {
    for (int64_t i = 0; i < stride; ++i) {
      const float expected = i < count ? Value(keys[i][e]) : 0;
      ASSERT_EQ(columns[e * stride + i], expected) << count << " " << width << " " << e << " " << i;
    }
  }
  EXPECT_EQ(columns.back(), 7.0f);
}

TEST(KeyColumnsTest, AreTheKeysTransposed) {
  for (const int64_t count : {0, 1, 3, 4, 7, 63, 64}) {
    for (const int64_t width : {1, 3, 4, 6, 64, 65}) {
      Check<float>(count, width, 64);
      Check<BF16>(count, width, 64);
    }
  }
}

}  // namespace
}  // namespace hippodrome::cpu::key_columns_test
