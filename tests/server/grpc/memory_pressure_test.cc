#include "server/grpc/memory_pressure.h"

#include <gtest/gtest.h>

#include <vector>

namespace hippodrome::memory_pressure_test {
namespace {

using Level = MemoryPressure::Level;
constexpr auto kPeriod = MemoryPressure::kPeriod;

const MemoryPressure::Clock::time_point kBegin{std::chrono::hours(1)};

TEST(MemoryPressureTest, GrowthWithinAPeriod) {
  MemoryPressure pressure(100);
  EXPECT_EQ(pressure.Look(1000, kBegin), Level::kNone);
  EXPECT_EQ(pressure.Look(1049, kBegin), Level::kNone);
  EXPECT_EQ(pressure.Look(1050, kBegin), Level::kRising);
  EXPECT_EQ(pressure.Look(1100, kBegin), Level::kHigh);
  EXPECT_EQ(pressure.Look(1020, kBegin), Level::kNone);
  EXPECT_EQ(pressure.Look(500, kBegin), Level::kNone);
  EXPECT_EQ(pressure.Look(600, kBegin), Level::kHigh);
}

TEST(MemoryPressureTest, GrowthAcrossTheEndOfAPeriodIsSeen) {
  MemoryPressure pressure(100);
  EXPECT_EQ(pressure.Look(1000, kBegin + kPeriod / 2), Level::kNone);
  EXPECT_EQ(pressure.Look(1090, kBegin + kPeriod * 14 / 10), Level::kRising);
  EXPECT_EQ(pressure.Look(1110, kBegin + kPeriod * 16 / 10), Level::kHigh);
}

TEST(MemoryPressureTest, WhatGrowsSlowlyOrStaysIsNoPressure) {
  MemoryPressure pressure(100);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(pressure.Look(1000 + 20 * i, kBegin + i * kPeriod), Level::kNone) << i;
  }
  EXPECT_EQ(pressure.Look(5000, kBegin + 100 * kPeriod), Level::kHigh);
  EXPECT_EQ(pressure.Look(5000, kBegin + 101 * kPeriod), Level::kNone);
}

TEST(MemoryPressureTest, PrivateBytesFollowWhatIsAllocated) {
  const int64_t before = PrivateBytes();
  ASSERT_GT(before, 0);
  const std::vector<char> memory(size_t{64} << 20, 1);
  EXPECT_GE(PrivateBytes(), before + (int64_t{60} << 20));
}

}  // namespace
}  // namespace hippodrome::memory_pressure_test
