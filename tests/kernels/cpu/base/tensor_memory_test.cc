#include "kernels/cpu/base/tensor_memory.h"

#include <gtest/gtest.h>

#include <vector>

namespace hippodrome::cpu::tensor_memory_test {
namespace {

TEST(TensorMemoryTest, StartsZeroed) {
  const OwnedTensor tensor = NewMatrix(3, 5, DType::kF32);
  std::vector<float> values(15, 1);
  CopyOut(tensor, values);
  EXPECT_EQ(values, std::vector<float>(15, 0));
}

TEST(TensorMemoryTest, CopiesIntoASliceAlone) {
  const OwnedTensor tensor = NewMatrix(3, 4, DType::kF32);
  CopyIn(std::vector<float>{1, 2, 3, 4}, tensor.view.Rows(1, 2).Cols(2, 2));
  std::vector<float> values(12);
  CopyOut(tensor, values);
  EXPECT_EQ(values, (std::vector<float>{0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 3, 4}));
  std::vector<float> slice(4);
  CopyOut(tensor.view.Rows(1, 2).Cols(2, 2), slice);
  EXPECT_EQ(slice, (std::vector<float>{1, 2, 3, 4}));
}

TEST(TensorMemoryTest, HoldsIndices) {
  const OwnedTensor tensor = NewMatrix(1, 3, DType::kI32);
  CopyIn(std::vector<int32_t>{-1, 0, 1 << 30}, tensor.view);
  std::vector<int32_t> values(3);
  CopyOut(tensor, values);
  EXPECT_EQ(values, (std::vector<int32_t>{-1, 0, 1 << 30}));
}

TEST(TensorMemoryTest, MayBeEmpty) {
  const OwnedTensor tensor = NewMatrix(0, 7, DType::kF32);
  std::vector<float> none;
  CopyOut(tensor, none);
  EXPECT_EQ(tensor.view.rows, 0);
}

}  // namespace
}  // namespace hippodrome::cpu::tensor_memory_test
