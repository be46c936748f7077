#include "engine/checkpoint/stored_matrix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "kernels/quantized_group.h"

namespace hippodrome::stored_matrix_test {
namespace {

using testing::HasSubstr;

// Tensors in memory.
class MemoryWeights final : public WeightsSource {
 public:
  absl::StatusOr<TensorView> Get(const std::string& name,
                                 const std::vector<int64_t>& shape) override {
    const auto found = tensors.find(name);
    if (found == tensors.end()) return absl::NotFoundError("no " + name);
    if (found->second.shape != shape) return InvalidArgument(name + " has another shape");
    return found->second;
  }
  DType TypeOf(const std::string& name) const override {
    const auto found = tensors.find(name);
    return found == tensors.end() ? DType::kF32 : found->second.dtype;
  }
  void Drop(const TensorView& /*tensor*/) override {}

  std::map<std::string, TensorView> tensors;
};

constexpr int64_t kRows = 3;
constexpr int64_t kCols = kInt8Group + 1;  // an odd one, and a group of one

class StoredMatrixTest : public testing::TestWithParam<DType> {
 protected:
  void SetUp() override {
    for (int64_t i = 0; i < kRows * kCols; ++i) {
      values_.push_back(static_cast<float>(i % 97 - 40) * 0.25f);
    }
    rows_ = QuantizeRows(values_, kCols, GetParam());
    const std::vector<TensorSpec> specs = StoredSpecs({"w", GetParam(), {kRows, kCols}});
    ASSERT_EQ(specs.size(), 2);
    source_.tensors = {
        {"w", {"w", specs[0].dtype, specs[0].shape, rows_.values}},
        {"w_scale",
         {"w_scale", specs[1].dtype, specs[1].shape, std::as_bytes(std::span(rows_.scales))}}};
  }
  std::string Error() { return Message(GetMatrix(source_, "w", kRows, kCols).status()); }

  std::vector<float> values_;
  QuantizedRows rows_;
  MemoryWeights source_;
};
INSTANTIATE_TEST_SUITE_P(Types, StoredMatrixTest, testing::Values(DType::kI8, DType::kI4));

TEST_P(StoredMatrixTest, HasTheValuesOfItsGroups) {
  const auto matrix = GetMatrix(source_, "w", kRows, kCols);
  ASSERT_TRUE(matrix.ok()) << matrix.status();
  EXPECT_EQ(matrix->dtype, GetParam());
  const std::vector<float> read = *Dequantize(*matrix);
  const int64_t group = QuantizedGroup(GetParam());
  for (int64_t r = 0; r < kRows; ++r) {
    for (int64_t begin = 0; begin < kCols; begin += group) {
      const auto first = static_cast<size_t>(r * kCols + begin);
      const auto count = static_cast<size_t>(std::min(group, kCols - begin));
      std::vector<int8_t> integers(count);
      const float scale = ToFloat(
          QuantizeGroup(GetParam(), std::span(values_).subspan(first, count), integers.data()));
      for (size_t k = 0; k < count; ++k) {
        ASSERT_EQ(read[first + k], scale * static_cast<float>(integers[k])) << r << " " << begin;
      }
    }
  }
}

TEST_P(StoredMatrixTest, NamesWhatIsWrongWithTheScales) {
  TensorView& scale = source_.tensors["w_scale"];
  scale.dtype = DType::kF16;
  EXPECT_EQ(Error(), "tensor \"w_scale\" is F16, expected BF16");
  scale.dtype = DType::kBF16;
  rows_.scales[2] = ToBF16(INFINITY);
  EXPECT_EQ(Error(), "w_scale: element 2 is not a finite number");
  rows_.scales[2] = {};
  EXPECT_TRUE(GetMatrix(source_, "w", kRows, kCols).ok());
  scale.shape[1] -= 1;
  EXPECT_EQ(Error(), "w_scale has another shape");
  source_.tensors.erase("w_scale");
  EXPECT_EQ(Error(), "no w_scale");
}

TEST_P(StoredMatrixTest, ValuesThatAreNotFiniteAreNamed) {
  for (BF16& scale : rows_.scales) scale = {0x7f7f};  // the largest
  rows_.values.front() = std::byte{0x7f};
  const auto matrix = GetMatrix(source_, "w", kRows, kCols);
  EXPECT_EQ(Message(Dequantize(*matrix).status()), "w: element 0 is not a finite number");
}

TEST(StoredMatrixOfFloatsTest, IsTakenAsItIs) {
  const std::vector<float> values = {1, 2, 3, NAN};
  MemoryWeights source;
  source.tensors["w"] = {"w", DType::kF32, {1, 3}, std::as_bytes(std::span(values).first(3))};
  EXPECT_EQ(GetMatrix(source, "w", 1, 3)->dtype, DType::kF32);
  source.tensors["w"] = {"w", DType::kF32, {1, 4}, std::as_bytes(std::span(values))};
  EXPECT_EQ(Message(GetMatrix(source, "w", 1, 4).status()), "w: element 3 is not a finite number");
}

}  // namespace
}  // namespace hippodrome::stored_matrix_test
