#include "kernels/cuda/gemm/packed_weights.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/cuda/base/tensor_memory.h"
#include "tests/kernels/cpu/random_matrix.h"

namespace hippodrome::cuda::packed_weights_test {
namespace {

using Values = std::vector<float>;

Values Read(Device& device, const PackedWeights& weights) {
  Values values(static_cast<size_t>(weights.out() * weights.in()));
  CopyOut(device, {weights.data(), weights.dtype(), weights.out(), weights.in(), weights.in()},
          std::span<float>(values));
  return values;
}

class PackedWeightsTest : public testing::TestWithParam<DType> {
 protected:
  float Rounded(float x) const { return GetParam() == DType::kBF16 ? ToFloat(ToBF16(x)) : x; }

  Device device_;
};

INSTANTIATE_TEST_SUITE_P(Types, PackedWeightsTest, testing::Values(DType::kF32, DType::kBF16));

TEST_P(PackedWeightsTest, StacksPartsOfEveryType) {
  constexpr int64_t kIn = 67;
  const Values f32 = RandomValues(70 * kIn, 1);
  std::vector<BF16> bf16;
  std::vector<uint16_t> f16;
  for (int64_t i = 0; i < 3 * kIn; ++i) bf16.push_back({static_cast<uint16_t>(0x3f00 + i)});
  for (int64_t i = 0; i < 61 * kIn; ++i) f16.push_back(static_cast<uint16_t>(i));
  const HostMatrix parts[] = {{f32.data(), DType::kF32, 70, kIn},
                              {bf16.data(), DType::kBF16, 3, kIn},
                              {f16.data(), DType::kF16, 61, kIn}};
  Values expected;
  for (float x : f32) expected.push_back(Rounded(x));
  for (BF16 x : bf16) expected.push_back(ToFloat(x));
  for (uint16_t x : f16) expected.push_back(Rounded(HalfToFloat(x)));

  const auto weights = PackLinear(device_, parts, GetParam());
  EXPECT_EQ(weights->out(), 134);
  EXPECT_EQ(weights->in(), kIn);
  EXPECT_EQ(weights->dtype(), GetParam());
  EXPECT_EQ(weights->bytes(), 134 * kIn * static_cast<int64_t>(SizeOf(GetParam())));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(weights->data()) % 256, 0u);
  EXPECT_EQ(Read(device_, *weights), expected);
}

TEST_P(PackedWeightsTest, ConvertsMoreThanOneBuffer) {
  constexpr int64_t kIn = 1031;
  constexpr int64_t kOut = 1033;  // kIn * kOut > 2^20
  std::vector<uint16_t> f16(kOut * kIn);
  for (size_t i = 0; i < f16.size(); ++i) f16[i] = static_cast<uint16_t>(i % 31000);
  const HostMatrix part = {f16.data(), DType::kF16, kOut, kIn};
  const Values values = Read(device_, *PackLinear(device_, std::span(&part, 1), GetParam()));
  for (size_t i = 0; i < f16.size(); ++i) ASSERT_EQ(values[i], Rounded(HalfToFloat(f16[i])));
}

}  // namespace
}  // namespace hippodrome::cuda::packed_weights_test
