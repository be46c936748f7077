#include "kernels/cpu/linear_epilogue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kernels/cpu/packed_weights.h"
#include "tests/kernels/cpu/random_matrix.h"

namespace hippodrome::cpu {
namespace {

using Activation = Epilogue::Activation;
using Values = std::vector<float>;

double Reference(Activation activation, double x) {
  switch (activation) {
    case Activation::kGeluTanh: {
      // 0.5 x (1 + tanh(z)) without its cancellation.
      const double z = std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
      return x / (1 + std::exp(-2 * z));
    }
    case Activation::kGeluErf:
      return 0.5 * x * std::erfc(-x / std::numbers::sqrt2);
    default:
      return x;
  }
}

float Activate(Activation activation, float x) {
  float y = 0;
  ApplyEpilogue({.sums = &x,
                 .rows = 1,
                 .cols = 1,
                 .bias = nullptr,
                 .activation = activation,
                 .residual = nullptr,
                 .residual_stride = 0,
                 .y = &y,
                 .y_stride = 1});
  return y;
}

class GeluTest : public testing::TestWithParam<Activation> {};

INSTANTIATE_TEST_SUITE_P(Forms, GeluTest,
                         testing::Values(Activation::kGeluTanh, Activation::kGeluErf));

// The exponent is rounded before it is exponentiated: an error of u |exponent|, |exponent| < 1 +
// x^2 or so where the result is not negligible. The rest is a handful of roundings.
TEST_P(GeluTest, IsWithinAFewUlp) {
  for (double x = -30; x < 30; x += 0.00137) {
    const float input = static_cast<float>(x);
    const double expected = Reference(GetParam(), input);
    const double relative =
        (12 + 2 * std::min(x < 0 ? x * x * (1 + std::abs(x) / 8) : 2.0, 100.0)) * kUnitRoundoff;
    ASSERT_NEAR(Activate(GetParam(), input), expected, std::abs(expected) * relative + 1e-36)
        << "at " << input;
  }
}

TEST_P(GeluTest, ExtremesAreSane) {
  EXPECT_EQ(Activate(GetParam(), 0.0f), 0.0f);
  EXPECT_EQ(Activate(GetParam(), 1e30f), 1e30f);
  EXPECT_EQ(Activate(GetParam(), -1e30f), 0.0f);
  EXPECT_EQ(Activate(GetParam(), 1e-30f), 0.5e-30f);
  EXPECT_TRUE(std::isnan(Activate(GetParam(), std::nanf(""))));
}

TEST(LinearEpilogueTest, AddsBiasThenActivatesThenAddsTheResidual) {
  constexpr int64_t kRows = 3;
  for (int64_t cols : {1, 15, 16, 17, 63, 64}) {
    for (Activation activation : {Activation::kNone, Activation::kGeluTanh, Activation::kGeluErf}) {
      const Values sums = RandomValues(kRows * kPanelColumns, 1);
      const Values bias = RandomValues(cols, 2);
      const Values residual = RandomValues(kRows * 70, 3);
      Values y = residual;  // the residual may be the output
      ApplyEpilogue({.sums = sums.data(),
                     .rows = kRows,
                     .cols = cols,
                     .bias = bias.data(),
                     .activation = activation,
                     .residual = y.data(),
                     .residual_stride = 70,
                     .y = y.data(),
                     .y_stride = 70});
      for (int64_t i = 0; i < kRows * 70; ++i) {
        const size_t at = static_cast<size_t>(i);
        if (i % 70 >= cols) {
          ASSERT_EQ(y[at], residual[at]) << "beyond the columns";
          continue;
        }
        const size_t c = static_cast<size_t>(i % 70);
        const float sum = sums[static_cast<size_t>(i / 70 * kPanelColumns) + c] + bias[c];
        ASSERT_NEAR(y[at], Reference(activation, sum) + residual[at], 16 * kUnitRoundoff);
      }
    }
  }
}

}  // namespace
}  // namespace hippodrome::cpu
