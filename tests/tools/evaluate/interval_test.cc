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

TEST(IntervalTest, OneExampleIsSureOfItself) {
  const Interval found = Bootstrap(1, [](std::span<const size_t>) { return 0.5; });
  EXPECT_EQ(found.standard_error, 0);
  EXPECT_EQ(found.low, 0.5);
  EXPECT_EQ(found.high, 0.5);
}

}  // namespace
}  // namespace hippodrome::interval_test
