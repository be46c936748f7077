#include "kernels/cpu/rows/gather_rows.h"

#include <gtest/gtest.h>

#include "tests/kernels/cpu/random_matrix.h"

namespace hippodrome::cpu::gather_rows_test {
namespace {

TEST(GatherRowsTest, PicksRowsAndZeros) {
  constexpr int64_t kWidth = 37;
  const StridedMatrix x(5, kWidth, 3, RandomValues(5 * kWidth, 1));
  const std::vector<int32_t> rows = {4, 0, -1, 4, 2, 2, -1};
  const OwnedTensor indices = NewMatrix(1, 7, DType::kI32);
  CopyIn(rows, indices.view);
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    const StridedMatrix y(7, kWidth, 1, std::vector<float>(7 * kWidth, 99.0f));
    GatherRows(pool, x.view(), indices, y.view());
    for (size_t i = 0; i < rows.size(); ++i) {
      for (size_t c = 0; c < kWidth; ++c) {
        const float expected = rows[i] < 0 ? 0 : x.values()[size_t(rows[i]) * kWidth + c];
        EXPECT_EQ(y.values()[i * kWidth + c], expected) << i << ", " << c;
      }
    }
  }
}

TEST(GatherRowsTest, TakesNoRows) {
  ThreadPool pool(2);
  const StridedMatrix x(5, 4, 0);
  const OwnedTensor indices = NewMatrix(1, 0, DType::kI32);
  GatherRows(pool, x.view(), indices, StridedMatrix(0, 4, 0).view());
}

}  // namespace
}  // namespace hippodrome::cpu::gather_rows_test
