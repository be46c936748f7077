#include "kernels/cuda/h3/scan_splits.h"

#include <gtest/gtest.h>

#include <vector>

namespace hippodrome::cuda::scan_splits_test {
namespace {

std::vector<SequencePart> Parts(const std::vector<int32_t>& tokens) {
  std::vector<SequencePart> parts;
  for (const int32_t count : tokens) parts.push_back({.slot = 0, .tokens = count});
  return parts;
}

TEST(ScanSplitsTest, OneWhereChannelsFillTheDevice) {
  EXPECT_EQ(ScanSplits(Parts(std::vector<int32_t>(16, 1024)), 128, 132), 1);
  EXPECT_EQ(ScanSplits(Parts({16384}), 48, 132), 1);
}

TEST(ScanSplitsTest, MoreWhereMultiprocessorsWouldRest) {
  EXPECT_EQ(ScanSplits(Parts(std::vector<int32_t>(16, 1024)), 128, 108), 4);
  EXPECT_EQ(ScanSplits(Parts(std::vector<int32_t>(16, 1024)), 48, 132), 8);
  EXPECT_EQ(ScanSplits(Parts({4000, 4000}), 16, 132), 2);
}

TEST(ScanSplitsTest, NotForWhatTakesNoTime) {
  EXPECT_EQ(ScanSplits(Parts({4000, 10, 10}), 100, 132), 1);
  std::vector<SequencePart> parts = Parts({4000, 4000});
  parts[1].slot = -1;
  EXPECT_EQ(ScanSplits(parts, 16, 132), 1);
}

}  // namespace
}  // namespace hippodrome::cuda::scan_splits_test
