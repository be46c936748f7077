#include "kernels/cpu/attention/softmax.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/kernels/cpu/random_matrix.h"

namespace hippodrome::cpu::softmax_rows_test {
namespace {

// Where key s of row 3 is, and how many floats blocks of all keys take.
size_t At(int64_t s) {
  return size_t(s / kScoreBlock * kScoreBlock * kScoreBlock + 3 * kScoreBlock + s % kScoreBlock);
}
int64_t Floats(int64_t keys) { return (keys + 63) / kScoreBlock * kScoreBlock * kScoreBlock; }

// An exponential errs by 2 ulp, and by the difference's rounding; sums of n by g(n).
TEST(SoftmaxRowsTest, ExponentialsAndTheirGradients) {
  for (const int64_t keys : {1, 2, 15, 16, 17, 63, 64, 65, 200}) {
    std::vector<float> p = RandomValues(Floats(keys), 1, 3);
    std::vector<float> dp = RandomValues(Floats(keys), 2);
    const std::vector<float> scores = p;
    const std::vector<float> given = dp;
    float max = -std::numeric_limits<float>::infinity();
    for (int64_t s = 0; s < keys; ++s) max = std::max(max, scores[At(s)]);
    double total = 0, mean = 0;
    const auto exponential = [&](int64_t s) { return std::exp(double(scores[At(s)]) - max); };
    for (int64_t s = 0; s < keys; ++s) total += exponential(s);
    for (int64_t s = 0; s < keys; ++s) mean += exponential(s) / total * given[At(s)];

    const float sum = ExponentialRow(p.data() + 3 * kScoreBlock, keys);
    EXPECT_NEAR(sum, total, Gamma(keys + 16) * total);
    for (int64_t s = 0; s < keys; ++s) EXPECT_NEAR(p[At(s)], exponential(s), Gamma(12));

    SoftmaxBackwardRow(sum, keys, p.data() + 3 * kScoreBlock, dp.data() + 3 * kScoreBlock);
    for (int64_t s = 0; s < keys; ++s) {
      const double weight = exponential(s) / total;
      EXPECT_NEAR(p[At(s)], weight, Gamma(keys + 32) * weight);
      EXPECT_NEAR(dp[At(s)], weight * (given[At(s)] - mean), 2 * Gamma(2 * keys + 64) * weight * 2);
    }
    for (int64_t s = keys; s % kScoreColumns != 0; ++s) {
      EXPECT_EQ(p[At(s)], 0);
      EXPECT_EQ(dp[At(s)], 0);
    }
  }
}

TEST(SoftmaxRowsTest, LeavesOtherRows) {
  std::vector<float> p = RandomValues(Floats(70), 1);
  const std::vector<float> old = p;
  ExponentialRow(p.data() + 3 * kScoreBlock, 70);
  for (size_t i = 0; i < p.size(); ++i) {
    if (i / kScoreBlock % kScoreBlock != 3) {
      EXPECT_EQ(p[i], old[i]);
    }
  }
}

}  // namespace
}  // namespace hippodrome::cpu::softmax_rows_test
