#include "kernels/cuda/attention/rotary.cuh"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace hippodrome::cuda::rotary_test {
namespace {

TEST(RotaryTest, TurnsAreAccurateAtLargeAngles) {
  double largest = 0;
  for (int j = 0; j < 32; ++j) {
    const auto inv_freq = static_cast<float>(std::pow(10000.0, -j / 32.0));
    for (int64_t position = 0; position <= 1 << 20; position += position / 97 + 1) {
      const double angle = static_cast<double>(position) * inv_freq;
      const float2 turn = Turn(position, inv_freq);
      largest = std::max(
          {largest, std::abs(turn.x - std::cos(angle)), std::abs(turn.y - std::sin(angle))});
    }
  }
  EXPECT_LT(largest, 3e-7);
}

TEST(RotaryTest, PositionZeroTurnsNothing) {
  EXPECT_EQ(Turn(0, 1.0f).x, 1.0f);
  EXPECT_EQ(Turn(0, 1.0f).y, 0.0f);
}

TEST(RotaryTest, RotatesPairsOfTheTwoHalves) {
  const float row[] = {1, 2, 3, 4, 5};
  const float inv_freq[] = {0.5f, 0.25f};
  const Rotary rotary = {inv_freq, 2};
  const auto rotated = [&](int j) {
    float x[1];
    LoadRotated(row, j, rotary, 7, x);
    return x[0];
  };
  EXPECT_NEAR(rotated(0), std::cos(3.5) - 3 * std::sin(3.5), 1e-6);
  EXPECT_NEAR(rotated(1), 2 * std::cos(1.75) - 4 * std::sin(1.75), 1e-6);
  EXPECT_NEAR(rotated(2), std::sin(3.5) + 3 * std::cos(3.5), 1e-6);
  EXPECT_NEAR(rotated(3), 2 * std::sin(1.75) + 4 * std::cos(1.75), 1e-6);
  EXPECT_EQ(rotated(4), 5);
}

}  // namespace
}  // namespace hippodrome::cuda::rotary_test
