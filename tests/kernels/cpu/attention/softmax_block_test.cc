#include "kernels/cpu/attention/softmax.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/cpu/random_matrix.h"

namespace hippodrome::cpu::softmax_block_test {
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

}  // namespace
}  // namespace hippodrome::cpu::softmax_block_test
