#include "tools/train/data/batch_sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "engine/base/status.h"

namespace hippodrome::batch_sampler_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<int64_t> Epoch(const BatchSampler& order, int64_t epoch) {
  std::vector<int64_t> all;
  for (int64_t i = 0; i < order.batches(); ++i) {
    const auto batch = order.Examples(epoch * order.batches() + i);
    all.insert(all.end(), batch.begin(), batch.end());
  }
  return all;
}

TEST(PermutedTest, IsAPermutationOfEverySize) {
  for (int64_t n = 1; n < 70; ++n) {
    std::vector<int64_t> images;
    for (int64_t i = 0; i < n; ++i) images.push_back(Permuted(7, n, i));
    std::sort(images.begin(), images.end());
    std::vector<int64_t> expected(n);
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(images, expected);
  }
}

// Of 10 places each is hit by about a tenth of 20,000 keys: 9 degrees of freedom, where chi-squared
// is above 33.7 once in 10,000 times.
TEST(PermutedTest, SendsAnElementEverywhere) {
  constexpr int64_t kKeys = 20000;
  for (const int64_t i : {0, 3, 9}) {
    std::vector<double> hits(10);
    for (uint64_t key = 0; key < kKeys; ++key) ++hits[Permuted(key * 0x9e3779b97f4a7c15u, 10, i)];
    double chi_squared = 0;
    for (const double hit : hits) chi_squared += (hit - 2000) * (hit - 2000) / 2000;
    EXPECT_LT(chi_squared, 33.7) << i;
  }
}

TEST(BatchSamplerTest, EpochsAreShuffledEachInItsOwnWay) {
  const auto order = BatchSampler::Create(100, {.batch_size = 10, .seed = 5});
  ASSERT_TRUE(order.ok()) << order.status();
  EXPECT_EQ(order->batches(), 10);
  const auto first = Epoch(*order, 0);
  const auto second = Epoch(*order, 1);
  EXPECT_TRUE(std::is_permutation(first.begin(), first.end(), second.begin()));
  EXPECT_NE(first, second);
  EXPECT_FALSE(std::is_sorted(first.begin(), first.end()));
  const auto other = BatchSampler::Create(100, {.batch_size = 10, .seed = 6});
  EXPECT_NE(first, Epoch(*other, 0));
}

TEST(BatchSamplerTest, TrainingDropsWhatFillsNoBatch) {
  const auto order = BatchSampler::Create(11, {.batch_size = 4});
  EXPECT_EQ(order->batches(), 2);
  auto epoch = Epoch(*order, 3);
  std::sort(epoch.begin(), epoch.end());
  EXPECT_EQ(epoch.size(), 8U);
  EXPECT_EQ(std::unique(epoch.begin(), epoch.end()), epoch.end());
}

TEST(BatchSamplerTest, EvaluationKeepsOrderAndAll) {
  const auto order = BatchSampler::Create(5, {.batch_size = 2, .evaluation = true});
  EXPECT_EQ(order->batches(), 3);
  EXPECT_THAT(Epoch(*order, 0), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(order->Examples(5), ElementsAre(4));
}

TEST(BatchSamplerTest, NamesWhatIsMissing) {
  EXPECT_THAT(Message(BatchSampler::Create(3, {.batch_size = 4}).status()),
              HasSubstr("3 example(s), too few for a batch of 4"));
  EXPECT_FALSE(BatchSampler::Create(0, {.batch_size = 4, .evaluation = true}).ok());
  EXPECT_THAT(Message(BatchSampler::Create(3, {.batch_size = 0}).status()),
              HasSubstr("batch size is 0"));
}

}  // namespace
}  // namespace hippodrome::batch_sampler_test
