#include "kernels/cpu/attention/rotary.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/cpu/random_matrix.h"

namespace hippodrome::cpu::rotary_test {
namespace {

TEST(RotaryTest, TurnsByTheAngleInDouble) {
  const std::vector<float> inv_freq = {1, 0.1f, 0.001f};
  std::vector<float> turns(6);
  for (int64_t position : {0, 1, 1000, 1000003}) {
    RotaryTurns(position, inv_freq.data(), 3, turns.data());
    for (size_t j = 0; j < 3; ++j) {
      const double angle = static_cast<double>(position) * inv_freq[j];
      EXPECT_NEAR(turns[j], std::cos(angle), kUnitRoundoff);
      EXPECT_NEAR(turns[3 + j], std::sin(angle), kUnitRoundoff);
    }
  }
}

TEST(RotaryTest, RotatesHalvesAndKeepsTheRest) {
  const std::vector<float> turns = {0, 0.6f, 1, 0.8f};  // a right angle, then 3-4-5
  std::vector<float> x = {1, 2, 10, 20, 7};
  Rotate(x.data(), turns.data(), 2, 5, x.data());  // in place
  EXPECT_FLOAT_EQ(x[0], -10);
  EXPECT_FLOAT_EQ(x[1], 2 * 0.6f - 20 * 0.8f);
  EXPECT_FLOAT_EQ(x[2], 1);
  EXPECT_FLOAT_EQ(x[3], 2 * 0.8f + 20 * 0.6f);
  EXPECT_EQ(x[4], 7);
}

TEST(RotaryTest, RotatesBack) {
  const std::vector<float> turns = {0, 0.6f, 1, 0.8f};
  const std::vector<float> x = {1, 2, 10, 20, 7};
  std::vector<float> y(5);
  Rotate(x.data(), turns.data(), 2, 5, y.data());
  RotateBack(y.data(), turns.data(), 2, 5, y.data());  // in place
  for (size_t i = 0; i < 5; ++i) EXPECT_FLOAT_EQ(y[i], x[i]);
}

}  // namespace
}  // namespace hippodrome::cpu::rotary_test
