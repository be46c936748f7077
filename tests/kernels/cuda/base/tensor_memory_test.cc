#include "kernels/cuda/base/tensor_memory.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace hippodrome::cuda::tensor_memory_test {
namespace {

using Values = std::vector<float>;

Values Read(Device& device, const Tensor& tensor) {
  Values values(static_cast<size_t>(tensor.rows * tensor.cols), -1);
  CopyOut(device, tensor, std::span<float>(values));
  return values;
}

class TensorMemoryTest : public testing::TestWithParam<DType> {
 protected:
  Device device_;
};

INSTANTIATE_TEST_SUITE_P(Types, TensorMemoryTest, testing::Values(DType::kF32, DType::kBF16));

TEST_P(TensorMemoryTest, StartsZeroed) {
  const OwnedTensor tensor = NewMatrix(device_, 3, 5, GetParam());
  EXPECT_EQ(tensor.view.stride, 5);
  EXPECT_EQ(Read(device_, tensor), Values(15, 0));
}

TEST_P(TensorMemoryTest, CopiesIntoASliceAlone) {
  const OwnedTensor tensor = NewMatrix(device_, 3, 4, GetParam());
  const Tensor slice = tensor.view.Rows(1, 2).Cols(2, 2);
  CopyIn(device_, Values{1, 2, 3, 4}, slice);
  EXPECT_EQ(Read(device_, tensor), (Values{0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 3, 4}));
  EXPECT_EQ(Read(device_, slice), (Values{1, 2, 3, 4}));
}

TEST_P(TensorMemoryTest, CopiesOneRowOfAWiderMatrix) {
  const OwnedTensor tensor = NewMatrix(device_, 2, 4, GetParam());
  CopyIn(device_, Values{1, 2}, tensor.view.Rows(1, 1).Cols(1, 2));
  EXPECT_EQ(Read(device_, tensor), (Values{0, 0, 0, 0, 0, 1, 2, 0}));
}

TEST_P(TensorMemoryTest, MayBeEmpty) {
  const OwnedTensor tensor = NewMatrix(device_, 0, 7, GetParam());
  CopyIn(device_, Values{}, tensor.view);
  EXPECT_EQ(Read(device_, tensor), Values{});
  EXPECT_EQ(tensor.view.rows, 0);
}

TEST(TensorMemoryBF16Test, RoundsToNearestEven) {
  Device device;
  const OwnedTensor tensor = NewMatrix(device, 1, 5, DType::kBF16);
  CopyIn(device, Values{1 + 0x1p-8f, 1 + 0x3p-8f, -1e30f, 0x1p-133f, std::nanf("")}, tensor.view);
  const Values values = Read(device, tensor);
  EXPECT_EQ(values[0], 1);
  EXPECT_EQ(values[1], 1 + 0x1p-6f);
  EXPECT_EQ(values[2], ToFloat(ToBF16(-1e30f)));
  EXPECT_EQ(values[3], 0x1p-133f);
  EXPECT_TRUE(std::isnan(values[4]));
}

TEST(TensorMemoryIndicesTest, HoldsIndices) {
  Device device;
  const OwnedTensor tensor = NewMatrix(device, 2, 3, DType::kI32);
  CopyIn(device, std::vector<int32_t>{-1, 0, 1 << 30, 7}, tensor.view.Cols(1, 2));
  std::vector<int32_t> values(6);
  CopyOut(device, tensor, std::span<int32_t>(values));
  EXPECT_EQ(values, (std::vector<int32_t>{0, -1, 0, 0, 1 << 30, 7}));
}

}  // namespace
}  // namespace hippodrome::cuda::tensor_memory_test
