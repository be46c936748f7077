#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <vector>

#include "engine/base/status.h"
#include "engine/checkpoint/safetensors.h"

namespace hippodrome::tensor_values_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// `values` as stored at an odd address.
template <typename T>
class Stored {
 public:
  Stored(DType dtype, const std::vector<T>& values) : bytes_(1 + values.size() * sizeof(T)) {
    const auto bytes = std::as_bytes(std::span(values));
    std::copy(bytes.begin(), bytes.end(), bytes_.begin() + 1);
    tensor_ = {"x", dtype, {static_cast<int64_t>(values.size())}, std::span(bytes_).subspan(1)};
  }
  const TensorView& tensor() const { return tensor_; }

 private:
  std::vector<std::byte> bytes_;
  TensorView tensor_;
};

TEST(ToFloats, ReadsEveryFloatingDtype) {
  EXPECT_THAT(*ToFloats(Stored<float>(DType::kF32, {1.5f, -0.1f}).tensor()),
              ElementsAre(1.5f, -0.1f));
  EXPECT_THAT(*ToFloats(Stored<double>(DType::kF64, {1.5, 0.1}).tensor()), ElementsAre(1.5f, 0.1f));
  EXPECT_THAT(*ToFloats(Stored<uint16_t>(DType::kBF16, {0x3fc0, 0xc000}).tensor()),
              ElementsAre(1.5f, -2.0f));
  EXPECT_THAT(*ToFloats(Stored<uint16_t>(DType::kF16, {0x3e00, 0xc000, 0x0001}).tensor()),
              ElementsAre(1.5f, -2.0f, 0x1p-24f));
  EXPECT_TRUE(ToFloats(Stored<float>(DType::kF32, {}).tensor())->empty());
}

TEST(ToIntegers, ReadsBothIntegerDtypes) {
  EXPECT_THAT(*ToIntegers(Stored<int64_t>(DType::kI64, {INT64_MIN, 7}).tensor()),
              ElementsAre(INT64_MIN, 7));
  EXPECT_THAT(*ToIntegers(Stored<int32_t>(DType::kI32, {-100, 7}).tensor()), ElementsAre(-100, 7));
}

TEST(TensorValues, RefuseOtherDtypes) {
  EXPECT_EQ(Message(ToFloats(Stored<int64_t>(DType::kI64, {1}).tensor()).status()),
            "tensor \"x\" is I64, expected F32, F16, BF16 or F64");
  EXPECT_EQ(Message(ToIntegers(Stored<float>(DType::kF32, {1}).tensor()).status()),
            "tensor \"x\" is F32, expected I64 or I32");
}

}  // namespace
}  // namespace hippodrome::tensor_values_test
