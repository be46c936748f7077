#include "kernels/cpu/rows/scatter_rows.h"

#include <gtest/gtest.h>

#include "tests/kernels/cpu/twin_matrix.h"

namespace hippodrome::cpu::scatter_rows_test {
namespace {

struct Problem {
  Problem(int64_t rows, int64_t cols, int64_t n)
      : dy(rows, cols, 3, 1), indices(NewMatrix(1, rows, DType::kI32)), table_rows(n) {
    const std::vector<float> random = RandomValues(rows, 2);
    for (int64_t i = 0; i < rows; ++i) {
      const auto index = static_cast<int32_t>((random[size_t(i)] + 1) / 2 * float(n + 1)) - 1;
      I32Row(indices, 0)[i] = std::min(index, static_cast<int32_t>(n - 1));
    }
  }

  TwinMatrix Scatter(int threads) const {
    ThreadPool pool(threads);
    TwinMatrix dtable(table_rows, dy.actual().cols, 1, 3);
    ScatterRows(pool, dy.actual(), indices, dtable.actual());
    Reference().ScatterRows(dy.expected(), indices, dtable.expected());
    return dtable;
  }

  TwinMatrix dy;
  OwnedTensor indices;
  int64_t table_rows;
};

// A row of the table sums at most all rows.
TEST(ScatterRowsTest, AddsEachRowToTheRowOfItsIndex) {
  for (const int64_t cols : {1, 63, 64, 65, 300}) {
    for (const int64_t table_rows : {1, 7, 500}) {
      const Problem p(100, cols, table_rows);
      EXPECT_LE(p.Scatter(2).Error(), Gamma(100) * 101) << cols << " columns, " << table_rows;
    }
  }
}

TEST(ScatterRowsTest, WithoutAnIndexNothingIsAdded) {
  Problem p(3, 5, 2);
  std::fill_n(I32Row(p.indices, 0), 3, -1);
  EXPECT_EQ(p.Scatter(1).values(), RandomValues(10, 3));
}

TEST(ScatterRowsTest, GivesTheSameBitsOnAnyNumberOfThreads) {
  const Problem p(2000, 200, 3);
  EXPECT_EQ(p.Scatter(1).values(), p.Scatter(3).values());
}

}  // namespace
}  // namespace hippodrome::cpu::scatter_rows_test
