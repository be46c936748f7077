#include "tools/evaluate/interval.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace hippodrome::interval_test {
namespace {

double MeanOf(const std::vector<double>& values, std::span<const size_t> places) {
  double sum = 0;
  for (const size_t i : places) sum += values[i];
  return sum / static_cast<double>(places.size());
}

TEST(IntervalTest, TheErrorOfAMeanIsThatOfTheSample) {
  EXPECT_DOUBLE_EQ(StandardErrorOfMean(std::vector<double>{1, 2, 3, 4}), std::sqrt(5.0 / 3 / 4));
  EXPECT_EQ(StandardErrorOfMean(std::vector<double>{7}), 0);
  EXPECT_EQ(StandardErrorOfMean({}), 0);
}

// Of a mean, the bootstrap must give what the formula gives: s sqrt((n - 1) / n) / sqrt(n), within
// the noise of so many resamples (a deviation of m normal values has one of 1 / sqrt(2 m)).
TEST(IntervalTest, ResamplingAMeanGivesItsError) {
  std::vector<double> values;
  for (int i = 0; i < 400; ++i) values.push_back(i % 7 == 0 ? 1 : 0);
  const auto mean = [&](std::span<const size_t> places) { return MeanOf(values, places); };
  const Interval found = Bootstrap(400, mean, 4000);
  const double expected = StandardErrorOfMean(values) * std::sqrt(399.0 / 400);
  EXPECT_NEAR(found.standard_error / expected, 1, 4 / std::sqrt(2 * 4000.0));
  const double middle = 58.0 / 400;
  EXPECT_NEAR((found.high - middle) / (1.96 * expected), 1, 0.1);
  EXPECT_NEAR((middle - found.low) / (1.96 * expected), 1, 0.1);
}

TEST(IntervalTest, TheSameSeedGivesTheSame) {
  const std::vector<double> values = {1, 5, 2, 8};
  const auto mean = [&](std::span<const size_t> places) { return MeanOf(values, places); };
  EXPECT_EQ(ToJson(Bootstrap(4, mean, 100, 3)), ToJson(Bootstrap(4, mean, 100, 3)));
  EXPECT_NE(ToJson(Bootstrap(4, mean, 100, 3)), ToJson(Bootstrap(4, mean, 100, 4)));
}

double Same(double mean) { return mean; }

// Blocks of one value are the bootstrap of examples; the noise is that of the test above, twice.
TEST(IntervalTest, BlocksOfOneValueAreExamples) {
  std::vector<ValueBlock> blocks;
  std::vector<double> values;
  for (int i = 0; i < 400; ++i) {
    values.push_back(i % 7);
    blocks.push_back({values.back(), 1});
  }
  const auto found = BootstrapBlocks({&blocks, 1}, Same, 4000);
  const double expected = StandardErrorOfMean(values);
  EXPECT_NEAR(found.value().standard_error / expected, 1, 6 / std::sqrt(2 * 4000.0));
}

// Two groups that differ: the mean is that of the one, the other or both.
TEST(IntervalTest, GroupsAreDrawnAsTheyAre) {
  const std::vector<std::vector<ValueBlock>> groups = {{{10, 5}}, {{60, 10}}};
  const Interval found = BootstrapBlocks(groups, Same).value();
  EXPECT_EQ(found.low, 2);
  EXPECT_EQ(found.high, 6);
  const double squared = BootstrapBlocks(groups, [](double mean) { return mean * mean; })->high;
  EXPECT_EQ(squared, 36);
}

TEST(IntervalTest, OneBlockTellsNothing) {
  EXPECT_FALSE(BootstrapBlocks(std::vector<std::vector<ValueBlock>>{{{7, 64}}}, Same));
  EXPECT_FALSE(BootstrapBlocks({}, Same));
}

TEST(IntervalTest, OneExampleIsSureOfItself) {
  const Interval found = Bootstrap(1, [](std::span<const size_t>) { return 0.5; });
  EXPECT_EQ(found.standard_error, 0);
  EXPECT_EQ(found.low, 0.5);
  EXPECT_EQ(found.high, 0.5);
}

}  // namespace
}  // namespace hippodrome::interval_test
