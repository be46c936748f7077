#include "kernels/cpu/attention/softmax.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/kernels/cpu/random_matrix.h"

namespace hippodrome::cpu::softmax_test {
namespace {

TEST(SoftmaxBlockTest, BlocksAddUpToTheSoftmax) {
  constexpr int64_t kScores = 3 * kKeyBlock + 5;
  const std::vector<float> scores = RandomValues(kScores, 1, 20);
  RunningSoftmax softmax;
  double total = 0;
  for (int64_t begin = 0; begin < kScores; begin += kKeyBlock) {
    const int64_t count = std::min(kKeyBlock, kScores - begin);
    std::vector<float> block(kKeyBlock, 1e30f);  // what is invisible must not matter
    std::copy_n(scores.begin() + begin, count, block.begin());
    float factor;
    ExtendSoftmax(block.data(), 1, count, &softmax, &factor);
    total *= factor;
    for (float p : block) total += p;
    for (int64_t s = count; s < kKeyBlock; ++s) EXPECT_EQ(block[static_cast<size_t>(s)], 0);
  }
  const float max = *std::max_element(scores.begin(), scores.end());
  double expected = 0;
  for (float score : scores) expected += std::exp(static_cast<double>(score) - max);
  EXPECT_EQ(softmax.max, max);
  EXPECT_NEAR(softmax.total, expected, expected * Gamma(kScores + 80));
  EXPECT_NEAR(total, expected, expected * Gamma(kScores + 80));
}

TEST(SoftmaxBlockTest, EachRowSeesOneMoreThanTheLast) {
  std::vector<float> scores(3 * kKeyBlock, 0);
  RunningSoftmax softmax[3];
  float factors[3];
  ExtendSoftmax(scores.data(), 3, 0, softmax, factors);
  EXPECT_EQ(softmax[0].total, 0);
  EXPECT_EQ(factors[0], 1);
  EXPECT_EQ(softmax[1].total, 1);
  EXPECT_EQ(softmax[2].total, 2);
}

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
}  // namespace hippodrome::cpu::softmax_test
