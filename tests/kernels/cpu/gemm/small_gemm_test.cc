#include "kernels/cpu/gemm/small_gemm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/cpu/random_matrix.h"

namespace hippodrome::cpu::small_gemm_test {
namespace {

// c, [rows][cols + 1], of random factors.
std::vector<float> Product(int64_t rows, int64_t cols, int64_t depth, bool transposed,
                           bool accumulate) {
  const std::vector<float> a = RandomValues((rows + 1) * (depth + 1), 1);
  const std::vector<float> b = RandomValues(depth * (cols + 2), 2);
  std::vector<float> c = RandomValues(rows * (cols + 1), 3);
  const SmallGemmFactor factor = {a.data(), transposed ? 1 : depth + 1, transposed ? rows + 1 : 1};
  SmallGemm({.a = factor,
             .b = b.data(),
             .b_row = cols + 2,
             .c = c.data(),
             .c_row = cols + 1,
             .rows = rows,
             .cols = cols,
             .depth = depth,
             .accumulate = accumulate});
  const std::vector<float> old = RandomValues(rows * (cols + 1), 3);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < cols; ++j) {
      const size_t at = size_t(i * (cols + 1) + j);
      double sum = accumulate ? old[at] : 0;
      double magnitude = std::abs(sum);
      for (int64_t k = 0; k < depth; ++k) {
        const double term =
            double(a[size_t(i * factor.row + k * factor.step)]) * b[size_t(k * (cols + 2) + j)];
        sum += term;
        magnitude += std::abs(term);
      }
      EXPECT_NEAR(c[at], sum, Gamma(2 * depth + 1) * magnitude) << i << ", " << j;
    }
    EXPECT_EQ(c[size_t(i * (cols + 1) + cols)], old[size_t(i * (cols + 1) + cols)]);
  }
  return c;
}

TEST(SmallGemmTest, MatchesTheFormula) {
  for (const int64_t rows : {1, 2, 3, 4, 5, 6, 7, 16, 23}) {
    for (const int64_t cols : {16, 32, 48, 64, 80, 144}) {
      for (const int64_t depth : {1, 2, 17}) {
        Product(rows, cols, depth, depth % 2 == 0, rows % 2 == 0);
      }
    }
  }
}

TEST(SmallGemmTest, WithoutDepthSumsAreWhatTheyWere) {
  Product(5, 32, 0, false, true);
  Product(5, 32, 0, false, false);
}

}  // namespace
}  // namespace hippodrome::cpu::small_gemm_test
