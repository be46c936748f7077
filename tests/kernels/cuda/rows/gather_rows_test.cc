#include "kernels/cuda/rows/gather_rows.h"

#include <gtest/gtest.h>

#include "tests/kernels/cpu/random_matrix.h"
#include "tests/kernels/cuda/device_matrix.h"

namespace hippodrome::cuda::gather_rows_test {
namespace {

class GatherRowsTest : public testing::TestWithParam<DType> {
 protected:
  // y from rows of x, both `gap` elements apart.
  void ExpectRows(const std::vector<int32_t>& rows, int64_t d, int64_t gap) {
    constexpr int64_t kRows = 9;
    Device device;
    const std::vector<float> x = RandomValues(kRows * d, 1);
    const auto count = static_cast<int64_t>(rows.size());
    const DeviceMatrix from(device, {kRows, d, DType::kF32, gap}, x);
    const OwnedTensor indices = NewMatrix(device, 1, count, DType::kI32);
    CopyIn(device, rows, indices);
    const std::vector<float> before(static_cast<size_t>(count * d), 7);
    const DeviceMatrix y(device, {count, d, GetParam(), gap}, before);
    GatherRows(device, from.view(), indices, y.view());
    const std::vector<float> values = y.values();
    for (size_t i = 0; i < values.size(); ++i) {
      const int64_t row = rows[i / static_cast<size_t>(d)];
      const auto column = static_cast<int64_t>(i) % d;
      const float expected =
          row < 0 ? 0 : Stored(GetParam(), x[static_cast<size_t>(row * d + column)]);
      ASSERT_EQ(values[i], expected) << "row " << row << " column " << column << " of " << d;
    }
    EXPECT_TRUE(y.SurroundingsAreZero());
  }
};

INSTANTIATE_TEST_SUITE_P(Types, GatherRowsTest, testing::Values(DType::kF32, DType::kBF16));

TEST_P(GatherRowsTest, CopiesRowsAndZeros) {
  for (const int64_t d : {1, 45, 64, 300, 1100}) {
    for (const int64_t gap : {0, 1, 4}) ExpectRows({8, 0, -1, 3, 3, -1}, d, gap);
  }
}

TEST_P(GatherRowsTest, TakesNoRows) { ExpectRows({}, 8, 0); }

}  // namespace
}  // namespace hippodrome::cuda::gather_rows_test
