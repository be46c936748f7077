#include "kernels/cpu/gemm/microkernel_amx.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/cpu/random_matrix.h"

namespace hippodrome::cpu::microkernel_amx_test {
namespace {

constexpr int64_t kSide = 32;
constexpr uint16_t kUnwritten = 0x1234;

class GradientTilesTest : public testing::TestWithParam<std::pair<int64_t, int64_t>> {
 protected:
  void SetUp() override {
    if (!HaveAmx()) GTEST_SKIP() << "no matrix registers";
  }
};

INSTANTIATE_TEST_SUITE_P(Sizes, GradientTilesTest,
                         testing::Values(std::pair(32, 32), std::pair(1, 1), std::pair(16, 32),
                                         std::pair(17, 15), std::pair(31, 17), std::pair(3, 31)));

TEST_P(GradientTilesTest, HoldsRowsAndColumnsAndSums) {
  const auto [rows, cols] = GetParam();
  const StridedMatrix matrix(rows, cols, 5, RandomValues(rows * cols, 1));
  const Tensor view = matrix.view();
  std::vector<BF16> tiles(4 * kAmxTile, BF16{kUnwritten});
  BF16* const by_rows = tiles.data();
  BF16* const by_columns = by_rows + 2 * kAmxTile;
  std::vector<float> sums(static_cast<size_t>(cols), 1.0f);
  StoreGradient({cpu::F32Row(view, 0), view.stride, rows, cols},
                {.rows = {by_rows, by_rows + kAmxTile},
                 .columns = {by_columns, by_columns + kAmxTile},
                 .sums = sums.data()});
  for (int64_t c = 0; c < kSide; ++c) {
    double sum = 1;
    double magnitude = 1;
    for (int64_t r = 0; r < kSide; ++r) {
      const bool inside = r < rows && c < cols;
      const float value = inside ? F32Row(view, r)[c] : 0.0f;
      sum += value;
      magnitude += std::abs(value);
      EXPECT_EQ(by_columns[c * kSide + r].bits, ToBF16(value).bits) << r << ", " << c;
      if (r >= rows) continue;
      EXPECT_EQ(by_rows[r * kSide + c].bits, ToBF16(value).bits) << r << ", " << c;
    }
    if (c >= cols) continue;
    EXPECT_NEAR(sums[static_cast<size_t>(c)], sum, Gamma(33) * magnitude);
  }
}

}  // namespace
}  // namespace hippodrome::cpu::microkernel_amx_test
