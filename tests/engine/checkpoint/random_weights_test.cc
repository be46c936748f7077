#include <gtest/gtest.h>

#include <cmath>

#include "engine/checkpoint/weights_source.h"

namespace hippodrome::random_weights_test {
namespace {

std::vector<float> Values(const std::string& name, const std::vector<int64_t>& shape) {
  RandomWeights source;
  const auto values = ReadFloats(source, name, shape);
  return {values->begin(), values->end()};
}

TEST(RandomWeightsTest, TheSameNameGivesTheSameValues) {
  EXPECT_EQ(Values("mlp.fc1.weight", {4, 5}), Values("mlp.fc1.weight", {4, 5}));
  EXPECT_NE(Values("mlp.fc1.weight", {4, 5}), Values("mlp.fc2.weight", {4, 5}));
}

TEST(RandomWeightsTest, FollowsThePublishedInitialisation) {
  EXPECT_EQ(Values("x.norm1.weight", {3}), std::vector<float>(3, 1.0f));
  EXPECT_EQ(Values("x.fc1.bias", {3}), std::vector<float>(3, 0.0f));
  const auto imaginary = Values("m.kernel.kernel.A_imag", {2, 3});
  EXPECT_FLOAT_EQ(imaginary[2], static_cast<float>(2 * M_PI));
  EXPECT_FLOAT_EQ(imaginary[3], 0);
  EXPECT_EQ(Values("m.ssm_k_kernel.kernel.B", {2, 2}), (std::vector<float>{1, 0, 1, 0}));
  EXPECT_EQ(Values("m.kernel.kernel.B", {1, 2, 2}), (std::vector<float>{1, 0, 1, 0}));
  for (const float log_dt : Values("m.kernel.kernel.log_dt", {100})) {
    EXPECT_GE(log_dt, std::log(0.001f));
    EXPECT_LE(log_dt, std::log(0.1f));
  }
  double squares = 0;
  const auto matrix = Values("mlp.fc1.weight", {100, 100});
  for (const float w : matrix) squares += w * w;
  EXPECT_NEAR(std::sqrt(squares / 10000), 0.02, 0.001);
}

TEST(RandomWeightsTest, FollowsThePublishedInitialisationOfAnEncoder) {
  const std::string layer = "bigs.encoder.layer.3.";
  EXPECT_EQ(Values(layer + "LayerNorm.weight", {3}), std::vector<float>(3, 1.0f));
  EXPECT_EQ(Values("cls.predictions.bias", {3}), std::vector<float>(3, 0.0f));
  EXPECT_EQ(Values(layer + "fs4.D", {1}), std::vector<float>(1, 1.0f));
  EXPECT_EQ(Values(layer + "bs4.kernel.A_re", {4}), std::vector<float>(4, -0.5f));
  const auto imaginary = Values(layer + "bs4.kernel.A_im", {2, 3});
  EXPECT_FLOAT_EQ(imaginary[2], static_cast<float>(2 * M_PI));
  EXPECT_FLOAT_EQ(imaginary[3], 0);
  for (int i = 0; i < 100; ++i) {
    const auto log_step =
        Values("bigs.encoder.layer." + std::to_string(i) + ".fs4.kernel.log_step", {1});
    EXPECT_GE(log_step[0], std::log(0.01f));
    EXPECT_LE(log_step[0], 0);
  }
  double squares = 0;
  for (const float c : Values(layer + "fs4.kernel.C", {1000, 2})) squares += c * c;
  EXPECT_NEAR(std::sqrt(squares / 2000), std::sqrt(0.5), 0.03);
}

}  // namespace
}  // namespace hippodrome::random_weights_test
