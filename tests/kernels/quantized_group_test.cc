#include "kernels/quantized_group.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/kernels/cpu/random_matrix.h"

namespace hippodrome::quantized_group_test {
namespace {

struct Quantized {
  std::vector<int8_t> integers;
  float scale = 0;
};

Quantized Quantize(DType weights, const std::vector<float>& values) {
  Quantized q{std::vector<int8_t>(values.size(), 99)};
  q.scale = ToFloat(QuantizeGroup(weights, values, q.integers.data()));
  return q;
}

double SquaredError(const std::vector<float>& values, const Quantized& q) {
  double sum = 0;
  for (size_t k = 0; k < values.size(); ++k) {
    sum += std::pow(double{values[k]} - double{q.scale} * q.integers[k], 2);
  }
  return sum;
}

// The nearest integers with a scale that is given.
Quantized WithScale(const std::vector<float>& values, float scale) {
  Quantized q{.scale = ToFloat(ToBF16(scale))};
  for (const float value : values) {
    q.integers.push_back(
        static_cast<int8_t>(std::clamp(std::nearbyint(value / q.scale), -8.0f, 7.0f)));
  }
  return q;
}

class QuantizedGroupTest : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(Types, QuantizedGroupTest, testing::Values(DType::kI8, DType::kI4));

TEST_P(QuantizedGroupTest, ZerosStayZeros) {
  for (const float value : {0.0f, kQuantizedLeast / 2}) {
    const Quantized q = Quantize(GetParam(), {value, -value, value});
    EXPECT_EQ(q.integers, std::vector<int8_t>(3, 0));
    EXPECT_EQ(q.scale, 0);
  }
}

TEST_P(QuantizedGroupTest, LargeValuesHaveFiniteScales) {
  const float most = std::numeric_limits<float>::max() / 2;
  const Quantized q = Quantize(GetParam(), {most, -most / 3, 1.0f});
  EXPECT_NEAR(q.scale * q.integers[0] / most, 1, 0.2);
  EXPECT_EQ(q.integers[2], 0);
}

TEST(Int8GroupTest, IntegersTimesAScaleComeBack) {
  for (const float scale : {0x1p-99f, 0.375f, 0x1p100f}) {
    const std::vector<float> values = {127 * scale, -126 * scale, scale, 0};
    const Quantized q = Quantize(DType::kI8, values);
    EXPECT_EQ(q.integers, (std::vector<int8_t>{127, -126, 1, 0}));
    EXPECT_EQ(q.scale, scale);
  }
}

TEST(Int8GroupTest, ErrsByHalfAStep) {
  const std::vector<float> values = RandomValues(kInt8Group, 1);
  const Quantized q = Quantize(DType::kI8, values);
  // Or by what the scale was rounded down by.
  for (size_t k = 0; k < values.size(); ++k) {
    EXPECT_NEAR(q.scale * q.integers[k], values[k], 0.51f * q.scale);
  }
}

TEST(Int4GroupTest, HasTheLeastErrorOfItsScales) {
  for (int seed = 0; seed < 20; ++seed) {
    const std::vector<float> values = RandomValues(kInt4Group, seed);
    float largest = 0;
    for (const float value : values) largest = std::max(largest, std::abs(value));
    const double error = SquaredError(values, Quantize(DType::kI4, values));
    for (const float step : kInt4Steps) {
      for (const float scale : {largest / step, -largest / step}) {
        // Sums in f32 may take two that are as good for each other.
        EXPECT_LE(error, SquaredError(values, WithScale(values, scale)) * (1 + 1e-5));
      }
    }
  }
}

TEST(PackInt4Test, TheFirstIsInTheLowerHalf) {
  EXPECT_EQ(PackInt4(-8, 7), 0xf0);
  for (int low = -8; low < 8; ++low) {
    for (int high = -8; high < 8; ++high) {
      EXPECT_EQ(UnpackInt4(PackInt4(low, high), false), low);
      EXPECT_EQ(UnpackInt4(PackInt4(low, high), true), high);
    }
  }
}

}  // namespace
}  // namespace hippodrome::quantized_group_test
