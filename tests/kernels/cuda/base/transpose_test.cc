#include "kernels/cuda/base/transpose.h"

#include <gtest/gtest.h>

#include "tests/kernels/cpu/random_matrix.h"
#include "tests/kernels/cuda/device_matrix.h"

namespace hippodrome::cuda::transpose_test {
namespace {

// y has `pad` columns more than x has rows.
void ExpectTransposed(Device& device, MatrixShape x_shape, DType y_type, int64_t pad) {
  const auto [rows, cols, x_type, gap] = x_shape;
  const std::vector<float> values = RandomValues(rows * cols, 1);
  const DeviceMatrix x(device, x_shape, values);
  const std::vector<float> before(static_cast<size_t>(cols * (rows + pad)), 7);
  const DeviceMatrix y(device, {cols, rows + pad, y_type, gap}, before);
  Transpose(device, x.view(), y.view());
  const std::vector<float> turned = y.values();
  for (int64_t c = 0; c < cols; ++c) {
    for (int64_t r = 0; r < rows + pad; ++r) {
      const float expected =
          r < rows ? Stored(y_type, Stored(x_type, values[static_cast<size_t>(r * cols + c)])) : 0;
      ASSERT_EQ(turned[static_cast<size_t>(c * (rows + pad) + r)], expected) << r << " " << c;
    }
  }
  EXPECT_TRUE(y.SurroundingsAreZero());
}

TEST(TransposeTest, TurnsAndPadsEveryTypeAndSize) {
  Device device;
  for (const DType from : {DType::kF32, DType::kBF16}) {
    for (const DType to : {DType::kF32, DType::kBF16}) {
      for (const int64_t rows : {1, 31, 32, 65}) {
        for (const int64_t cols : {1, 33, 64}) {
          ExpectTransposed(device, {rows, cols, from, 0}, to, (8 - rows % 8) % 8);
          ExpectTransposed(device, {rows, cols, from, 3}, to, 0);
        }
      }
    }
  }
}

}  // namespace
}  // namespace hippodrome::cuda::transpose_test
