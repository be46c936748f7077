#include "kernels/cpu/gemm/epilogue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kernels/cpu/gemm/packed_weights.h"
#include "tests/kernels/cpu/random_matrix.h"

namespace hippodrome::cpu::epilogue_test {
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
    case Activation::kTanh:
      return std::tanh(x);
    case Activation::kRelu:
      return std::max(x, 0.0);
    case Activation::kSilu:
      return x / (1 + std::exp(-x));
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
                 .gate = nullptr,
                 .gate_stride = 0,
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

// An exponential within 2 ulp and four roundings; below 0.35 a series in fewer of them.
TEST(EpilogueTest, TanhIsWithinAFewUlp) {
  for (double x = -12; x < 12; x += 0.00037) {
    const float input = static_cast<float>(x);
    const double expected = std::tanh(double{input});
    ASSERT_NEAR(Activate(Activation::kTanh, input), expected,
                8 * kUnitRoundoff * std::abs(expected))
        << "at " << input;
  }
  EXPECT_EQ(Activate(Activation::kTanh, 0.0f), 0.0f);
  EXPECT_EQ(Activate(Activation::kTanh, -0x1p-100f), -0x1p-100f);
  EXPECT_EQ(Activate(Activation::kTanh, 1e30f), 1.0f);
  EXPECT_EQ(Activate(Activation::kTanh, -1e30f), -1.0f);
  EXPECT_TRUE(std::isnan(Activate(Activation::kTanh, std::nanf(""))));
}

// Below -87 the exponential overflows and the result, below 1e-36, counts as zero.
TEST(EpilogueTest, SiluIsWithinAFewUlp) {
  for (double x = -100; x < 30; x += 0.0037) {
    const float input = static_cast<float>(x);
    const double expected = Reference(Activation::kSilu, input);
    ASSERT_NEAR(Activate(Activation::kSilu, input), expected,
                8 * kUnitRoundoff * std::abs(expected) + 1e-36)
        << "at " << input;
  }
  EXPECT_EQ(Activate(Activation::kSilu, 1e30f), 1e30f);
  EXPECT_EQ(Activate(Activation::kSilu, -1e30f), 0.0f);
  EXPECT_TRUE(std::isnan(Activate(Activation::kSilu, std::nanf(""))));
}

TEST(EpilogueTest, ReluKeepsWhatIsPositive) {
  EXPECT_EQ(Activate(Activation::kRelu, 1.5f), 1.5f);
  EXPECT_EQ(Activate(Activation::kRelu, -1.5f), 0.0f);
  EXPECT_EQ(Activate(Activation::kRelu, INFINITY), INFINITY);
  EXPECT_TRUE(std::isnan(Activate(Activation::kRelu, std::nanf(""))));
}

constexpr int64_t kRows = 3;
constexpr int64_t kStride = 70;

// A tile of `cols` columns with everything that an epilogue can have, the gate or the residual in
// the output's place.
struct Tile {
  explicit Tile(int64_t n_cols)
      : cols(n_cols),
        sums(RandomValues(kRows * kPanelColumns, 1)),
        bias(RandomValues(cols, 2)),
        gate(RandomValues(kRows * kStride, 3)),
        residual(RandomValues(kRows * kStride, 4)) {}

  Values Apply(Activation activation, bool has_gate, bool gate_is_output) const {
    Values y = gate_is_output ? gate : residual;
    ApplyEpilogue({.sums = sums.data(),
                   .rows = kRows,
                   .cols = cols,
                   .bias = bias.data(),
                   .activation = activation,
                   .gate = !has_gate        ? nullptr
                           : gate_is_output ? y.data()
                                            : gate.data(),
                   .gate_stride = kStride,
                   .residual = gate_is_output ? residual.data() : y.data(),
                   .residual_stride = kStride,
                   .y = y.data(),
                   .y_stride = kStride});
    return y;
  }

  void Expect(Activation activation, bool has_gate, bool gate_is_output) const {
    const Values y = Apply(activation, has_gate, gate_is_output);
    for (int64_t i = 0; i < kRows * kStride; ++i) {
      const size_t at = static_cast<size_t>(i);
      if (i % kStride >= cols) {
        ASSERT_EQ(y[at], (gate_is_output ? gate : residual)[at]) << "beyond the columns";
        continue;
      }
      const size_t c = static_cast<size_t>(i % kStride);
      const float sum = sums[static_cast<size_t>(i / kStride * kPanelColumns) + c] + bias[c];
      const double factor = has_gate ? gate[at] : 1;
      ASSERT_NEAR(y[at], Reference(activation, sum) * factor + residual[at], 16 * kUnitRoundoff);
    }
  }

  int64_t cols;
  Values sums, bias, gate, residual;
};

TEST(EpilogueTest, AddsBiasActivatesGatesAndAddsTheResidual) {
  for (int64_t cols : {1, 15, 16, 17, 63, 64}) {
    const Tile tile(cols);
    for (Activation activation : {Activation::kNone, Activation::kGeluTanh, Activation::kGeluErf,
                                  Activation::kTanh, Activation::kRelu, Activation::kSilu}) {
      tile.Expect(activation, /*has_gate=*/false, /*gate_is_output=*/false);
      tile.Expect(activation, /*has_gate=*/true, /*gate_is_output=*/false);
      tile.Expect(activation, /*has_gate=*/true, /*gate_is_output=*/true);
    }
  }
}

}  // namespace
}  // namespace hippodrome::cpu::epilogue_test
