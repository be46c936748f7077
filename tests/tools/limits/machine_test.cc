#include "tools/limits/machine.h"

#include <gtest/gtest.h>

namespace hippodrome::machine_test {
namespace {

const Ceilings kMeasured[] = {
    {2, 30, 200, 5, 1000},
    {2, 50, 100, 4, 3000},
    {2, 40, 300, 6, 2000},
};

void ExpectRates(const Ceilings& ceilings, double read, double f32, double bf16, double int8) {
  EXPECT_EQ(ceilings.threads, 2);
  EXPECT_EQ(ceilings.read_bytes, read);
  EXPECT_EQ(ceilings.f32_flops, f32);
  EXPECT_EQ(ceilings.bf16_flops, bf16);
  EXPECT_EQ(ceilings.int8_flops, int8);
}

TEST(MedianTest, IsInTheMiddle) {
  EXPECT_EQ(Median({3}), 3);
  EXPECT_EQ(Median({9, 1, 4}), 4);
  EXPECT_EQ(Median({9, 1, 4, 2}), 3);
}

TEST(CeilingsTest, EachRateHasItsMedian) { ExpectRates(MedianOf(kMeasured), 40, 200, 5, 2000); }

TEST(CeilingsTest, EachRateHasItsBest) {
  ExpectRates(BetterOf(kMeasured[0], kMeasured[1]), 50, 200, 5, 3000);
}

}  // namespace
}  // namespace hippodrome::machine_test
