#include "tools/device_model/launch_time.h"

#include <gtest/gtest.h>

namespace hippodrome::launch_time_test {
namespace {

DeviceRates H100() { return *RatesOf("h100"); }

TEST(LaunchTimeTest, ACopyTakesItsBytes) {
  constexpr double kBytes = 4e9;
  const LaunchTime time =
      TimeOf({.dram_bytes = kBytes, .blocks = 1e5, .warps = 8, .resident = 8}, H100());
  EXPECT_NEAR(time.seconds, kBytes / H100().dram_bytes, 4e-6);
  EXPECT_EQ(time.bound_by, "DRAM");
}

TEST(LaunchTimeTest, ALargeProductTakesItsOperations) {
  const LaunchTime time = TimeOf(
      {.dram_bytes = 3 * 2 * 8192.0 * 8192, .library_flops = 2 * 8192.0 * 8192 * 8192}, H100());
  const double limit = 2 * 8192.0 * 8192 * 8192 / H100().product_flops;
  EXPECT_GT(time.seconds, limit);
  EXPECT_LT(time.seconds, 1.1 * limit);
  EXPECT_EQ(time.bound_by, "tensor cores");
}

TEST(LaunchTimeTest, FewWarpsWaitForTheirOwnInstructions) {
  const LaunchCounts one = {.instructions = 1e6, .blocks = 132, .warps = 1, .resident = 1};
  LaunchCounts eight = one;
  eight.warps = 8;
  // As many instructions, by eight times as many warps: two of a scheduler, which hide each other.
  EXPECT_NEAR(TimeOf(one, H100()).seconds - 3e-6, 8 * (TimeOf(eight, H100()).seconds - 3e-6), 1e-9);
}

TEST(LaunchTimeTest, TheLastWaveIsAsLongAsAFullOne) {
  const auto seconds = [](double blocks) {
    return TimeOf({.instructions = 1e4 * blocks, .blocks = blocks, .warps = 4, .resident = 2},
                  H100())
        .seconds;
  };
  EXPECT_DOUBLE_EQ(seconds(265), seconds(2 * 264));
  EXPECT_LT(seconds(264), seconds(265));
}

TEST(LaunchTimeTest, NothingTakesTheStart) {
  const LaunchTime time = TimeOf({}, H100());
  EXPECT_DOUBLE_EQ(time.seconds, 3e-6);
  EXPECT_EQ(time.bound_by, "latency");
}

TEST(LaunchTimeTest, UnknownDevicesAreRefused) {
  EXPECT_FALSE(RatesOf("b200").ok());
  EXPECT_NE(RatesOf("b200").status().message().find("a100, h100 or h200"), std::string::npos);
}

// What the H100 counted and took: three lines of tests/benchmarks/gpu-counters.csv.
TEST(LaunchTimeTest, LaunchesTakeWhatTheH100Took) {
  struct Taken {
    const char* kernel;
    LaunchCounts counts;
    double seconds;
  };
  const Taken launches[] = {
      {"H3ScanKernel",
       {.dram_bytes = 281.5e6,
        .l2_sectors = 14.58e6,
        .l1_sectors = 9.74e6,
        .wavefronts = 27.97e6,
        .instructions = 147.2e6,
        .blocks = 640,
        .warps = 16,
        .resident = 1},
       303.0e-6},
      {"AttendTiles",
       {.dram_bytes = 261e6,
        .l2_sectors = 38.4e6,
        .l1_sectors = 27.6e6,
        .wavefronts = 24.2e6,
        .instructions = 79.95e6,
        .blocks = 2048,
        .warps = 4,
        .resident = 2},
       326.3e-6},
      {"CombineParts",
       {.dram_bytes = 10.7e6,
        .l2_sectors = 560e3,
        .l1_sectors = 540e3,
        .wavefronts = 16e3,
        .instructions = 4.16e6,
        .blocks = 4096,
        .warps = 4,
        .resident = 16},
       9.9e-6},
  };
  for (const Taken& launch : launches) {
    const double ratio = TimeOf(launch.counts, H100()).seconds / launch.seconds;
    EXPECT_GT(ratio, 0.7) << launch.kernel;
    EXPECT_LT(ratio, 1.35) << launch.kernel;
  }
}

}  // namespace
}  // namespace hippodrome::launch_time_test
