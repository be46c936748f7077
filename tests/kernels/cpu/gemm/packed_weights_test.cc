#include "kernels/cpu/gemm/packed_weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/kernels/cpu/random_matrix.h"

namespace hippodrome::cpu::packed_weights_test {
namespace {

using Values = std::vector<float>;

Values Row(const PackedWeights& weights, int64_t row) {
  Values values(static_cast<size_t>(weights.in()));
  UnpackRow(weights, row, values.data());
  return values;
}

Values Part(const Values& matrix, int64_t row, int64_t cols) {
  return {matrix.begin() + row * cols, matrix.begin() + (row + 1) * cols};
}

TEST(PackedWeightsTest, StacksPartsOfEveryType) {
  constexpr int64_t kIn = 67;
  const Values f32 = RandomValues(70 * kIn, 1);
  std::vector<BF16> bf16;
  std::vector<uint16_t> f16;
  for (int64_t i = 0; i < 3 * kIn; ++i) bf16.push_back({static_cast<uint16_t>(0x3f00 + i)});
  for (int64_t i = 0; i < 61 * kIn; ++i) f16.push_back(static_cast<uint16_t>(i));
  const HostMatrix parts[] = {{f32.data(), DType::kF32, 70, kIn},
                              {bf16.data(), DType::kBF16, 3, kIn},
                              {f16.data(), DType::kF16, 61, kIn}};
  ThreadPool pool(3);
  const auto weights = PackLinear(pool, parts, DType::kF32);

  ASSERT_EQ(weights->out(), 134);
  ASSERT_EQ(weights->in(), kIn);
  for (int64_t r = 0; r < 70; ++r) EXPECT_EQ(Row(*weights, r), Part(f32, r, kIn));
  for (int64_t r = 0; r < 3; ++r) {
    for (int64_t k = 0; k < kIn; ++k) {
      EXPECT_EQ(Row(*weights, 70 + r)[static_cast<size_t>(k)],
                ToFloat(bf16[static_cast<size_t>(r * kIn + k)]));
    }
  }
  for (int64_t r = 0; r < 61; ++r) {
    for (int64_t k = 0; k < kIn; ++k) {
      ASSERT_EQ(Row(*weights, 73 + r)[static_cast<size_t>(k)],
                HalfToFloat(f16[static_cast<size_t>(r * kIn + k)]));
    }
  }
}

TEST(PackedWeightsTest, RoundsToBF16) {
  const Values w = RandomValues(65 * 3, 2);
  const HostMatrix part = {w.data(), DType::kF32, 65, 3};
  ThreadPool pool(1);
  const auto weights = PackLinear(pool, std::span(&part, 1), DType::kBF16);
  for (int64_t r = 0; r < 65; ++r) {
    for (int64_t k = 0; k < 3; ++k) {
      EXPECT_EQ(Row(*weights, r)[static_cast<size_t>(k)],
                ToFloat(ToBF16(w[static_cast<size_t>(r * 3 + k)])));
    }
  }
}

TEST(PackedWeightsTest, RoundsToInt8) {
  constexpr int64_t kIn = 2 * kInt8Group + 3;
  const Values w = RandomValues(65 * kIn, 2);
  const HostMatrix part = {w.data(), DType::kF32, 65, kIn};
  ThreadPool pool(1);
  const auto weights = PackLinear(pool, std::span(&part, 1), DType::kI8);
  for (int64_t r = 0; r < 65; ++r) {
    const Values row = Row(*weights, r);
    for (int64_t begin = 0; begin < kIn; begin += kInt8Group) {
      float largest = 0;
      for (int64_t k = begin; k < std::min(begin + kInt8Group, kIn); ++k) {
        largest = std::max(largest, std::abs(w[static_cast<size_t>(r * kIn + k)]));
      }
      const float scale = ToFloat(ToBF16(largest / 127));
      for (int64_t k = begin; k < std::min(begin + kInt8Group, kIn); ++k) {
        const float value = w[static_cast<size_t>(r * kIn + k)];
        ASSERT_EQ(row[static_cast<size_t>(k)], scale * ToInt8(value, {scale, 1 / scale}));
      }
    }
  }
}

// The values of `integers` of `part`.
Values Dequantized(const HostMatrix& part, const std::vector<int8_t>& integers) {
  Values values;
  for (int64_t i = 0; i < part.rows * part.cols; ++i) {
    const int64_t group = i / part.cols * QuantizedGroups(part.cols, part.dtype) +
                          i % part.cols / QuantizedGroup(part.dtype);
    values.push_back(ToFloat(part.scales[group]) * integers[static_cast<size_t>(i)]);
  }
  return values;
}

// Between rows that are rounded here.
void ExpectTakenAsStored(HostMatrix part, const std::vector<int8_t>& integers,
                         const std::vector<BF16>& scales) {
  part.scales = scales.data();
  const Values f32 = RandomValues(part.cols, 5);
  const HostMatrix row = {f32.data(), DType::kF32, 1, part.cols};
  const HostMatrix parts[] = {row, part, row};
  ThreadPool pool(2);
  const auto weights = PackLinear(pool, parts, part.dtype);
  const Values values = Dequantized(part, integers);
  for (int64_t r = 0; r < part.rows; ++r) {
    EXPECT_EQ(Row(*weights, 1 + r), Part(values, r, part.cols)) << r;
  }
  const auto rounded = PackLinear(pool, std::span(&row, 1), part.dtype);
  EXPECT_EQ(Row(*weights, 0), Row(*rounded, 0));
  EXPECT_EQ(Row(*weights, 1 + part.rows), Row(*rounded, 0));
}

std::vector<BF16> SomeScales(int64_t count) {
  std::vector<BF16> scales;
  for (float value : RandomValues(count, 4)) scales.push_back(ToBF16(value));
  return scales;
}

TEST(PackedWeightsTest, TakesIntegersOf8BitsAsTheyAre) {
  constexpr int64_t kIn = kInt8Group + 7;
  std::vector<int8_t> integers;
  for (int64_t i = 0; i < 66 * kIn; ++i) integers.push_back(static_cast<int8_t>(i));
  ExpectTakenAsStored({integers.data(), DType::kI8, 66, kIn}, integers, SomeScales(66 * 2));
}

TEST(PackedWeightsTest, TakesIntegersOf4BitsAsTheyAre) {
  constexpr int64_t kIn = 2 * kInt4Group + 7;
  std::vector<int8_t> integers;
  std::vector<uint8_t> packed;
  for (int64_t r = 0; r < 66; ++r) {
    for (int64_t k = 0; k < kIn; ++k) {
      integers.push_back(static_cast<int8_t>((r + 3 * k) % 16 - 8));
      if (k % 2 == 0)
        packed.push_back(PackInt4(integers.back(), 0));
      else
        packed.back() = PackInt4(integers[integers.size() - 2], integers.back());
    }
  }
  ExpectTakenAsStored({packed.data(), DType::kI4, 66, kIn}, integers, SomeScales(66 * 3));
}

TEST(PackedWeightsTest, IsHardlyLargerThanItsElements) {
  EXPECT_EQ(PackedWeights(768, 768, DType::kF32).bytes(), 768 * 768 * 4);
  EXPECT_EQ(PackedWeights(50264, 768, DType::kBF16).bytes(), 50304 * 768 * 2);
  EXPECT_EQ(PackedWeights(50264, 768, DType::kI8).bytes(), 50304 * (768 + 768 / kInt8Group * 2));
  EXPECT_EQ(PackedWeights(768, 768, DType::kI4).bytes(), 768 * (384 + 768 / kInt4Group * 2));
}

}  // namespace
}  // namespace hippodrome::cpu::packed_weights_test
