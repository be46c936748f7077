#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kernels/cuda/gemm/linear.h"
#include "tests/kernels/cpu/random_matrix.h"
#include "tests/kernels/cuda/device_matrix.h"

namespace hippodrome::cuda::linear_epilogue_test {
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
    case Activation::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case Activation::kNone:
      break;
  }
  return x;
}

// The function of numbers one by one: as the bias of a product that is zero.
Values Activate(Activation activation, const Values& x) {
  Device device;
  const int64_t n = static_cast<int64_t>(x.size());
  const PackedWeights zero(device, n, 1, DType::kF32);
  const DeviceMatrix bias(device, {1, n}, x);
  const DeviceMatrix input(device, {1, 1});
  const DeviceMatrix y(device, {1, n});
  const Epilogue epilogue = {
      .bias = bias.view(), .activation = activation, .gate = {}, .residual = {}};
  Linear(device, nullptr, {.x = input.view(), .w = zero, .epilogue = epilogue, .y = y.view()});
  return y.values();
}

class GeluTest : public testing::TestWithParam<Activation> {};

INSTANTIATE_TEST_SUITE_P(Forms, GeluTest,
                         testing::Values(Activation::kGeluTanh, Activation::kGeluErf));

// The exponent is rounded before it is exponentiated: an error of u |exponent|, |exponent| < 1 +
// x^2 or so where the result is not negligible. The rest is a handful of roundings.
TEST_P(GeluTest, IsWithinAFewUlp) {
  Values inputs;
  for (double x = -30; x < 30; x += 0.0537) inputs.push_back(static_cast<float>(x));
  const Values y = Activate(GetParam(), inputs);
  for (size_t i = 0; i < y.size(); ++i) {
    const double x = inputs[i];
    const double expected = Reference(GetParam(), x);
    const double relative =
        (12 + 2 * std::min(x < 0 ? x * x * (1 + std::abs(x) / 8) : 2.0, 100.0)) * kUnitRoundoff;
    ASSERT_NEAR(y[i], expected, std::abs(expected) * relative + 1e-36) << "at " << x;
  }
}

TEST_P(GeluTest, ExtremesAreSane) {
  const Values y = Activate(GetParam(), {0.0f, 1e30f, -1e30f, 1e-30f, std::nanf("")});
  EXPECT_EQ(y[0], 0.0f);
  EXPECT_EQ(y[1], 1e30f);
  EXPECT_EQ(y[2], 0.0f);
  EXPECT_FLOAT_EQ(y[3], 0.5e-30f);
  EXPECT_TRUE(std::isnan(y[4]));
}

// A few ulp of the result: exp(-x) errs by 2, and so does tanh.
TEST(ActivationTest, OthersAreWithinAFewUlp) {
  Values inputs;
  for (double x = -30; x < 30; x += 0.0537) inputs.push_back(static_cast<float>(x));
  for (const Activation activation : {Activation::kTanh, Activation::kRelu, Activation::kSilu}) {
    const Values y = Activate(activation, inputs);
    for (size_t i = 0; i < y.size(); ++i) {
      const double expected = Reference(activation, inputs[i]);
      ASSERT_NEAR(y[i], expected, std::abs(expected) * 8 * kUnitRoundoff) << "at " << inputs[i];
    }
  }
}

TEST(ActivationTest, OthersAreSaneAtExtremes) {
  const Values x = {0.0f, 1e30f, -1e30f, std::nanf("")};
  const Values tanh = Activate(Activation::kTanh, x);
  const Values relu = Activate(Activation::kRelu, x);
  const Values silu = Activate(Activation::kSilu, x);
  for (const Values& y : {tanh, relu, silu}) {
    EXPECT_EQ(y[0], 0.0f);
    EXPECT_TRUE(std::isnan(y[3]));
  }
  EXPECT_EQ(Values(tanh.begin() + 1, tanh.begin() + 3), (Values{1, -1}));
  EXPECT_EQ(Values(relu.begin() + 1, relu.begin() + 3), (Values{1e30f, 0}));
  EXPECT_EQ(Values(silu.begin() + 1, silu.begin() + 3), (Values{1e30f, 0}));
}

constexpr Activation kActivations[] = {Activation::kNone,    Activation::kGeluTanh,
                                       Activation::kGeluErf, Activation::kTanh,
                                       Activation::kRelu,    Activation::kSilu};

// What y itself is, beside the output.
enum class Alias : uint8_t { kGate, kResidual };

struct Case {
  DType dtype;  // of all matrices
  Activation activation;
  int64_t rows;
  Alias alias;
  int64_t out;  // columns
  int64_t
      gap;  // of which the gaps between rows are multiples: 4 where they can be moved in vectors
};

constexpr int64_t kIn = 24;

// Runs `finish`(epilogue, y) with y = activation(. + bias) gate + residual, and compares it with
// that of `sums` [rows, out], whose error is `error`.
template <typename Finish>
void ExpectEpilogue(Device& device, const Case& c, const std::vector<double>& sums, double error,
                    const Finish& finish) {
  const auto stored = [&](float x) { return double{Stored(c.dtype, x)}; };
  const auto columns = static_cast<size_t>(c.out);
  const Values bias = RandomValues(c.out, 3);
  const Values gate = RandomValues(c.rows * c.out, 4);
  const Values residual = RandomValues(c.rows * c.out, 5);
  const bool gated = c.alias == Alias::kGate;
  const DeviceMatrix dbias(device, {1, c.out, c.dtype, c.gap}, bias);
  const DeviceMatrix y(device, {c.rows, c.out, c.dtype, 5 * c.gap}, gated ? gate : residual);
  const DeviceMatrix other(device, {c.rows, c.out, c.dtype, 2 * c.gap}, gated ? residual : gate);
  const Epilogue epilogue = {.bias = dbias.view(),
                             .activation = c.activation,
                             .gate = gated ? y.view() : other.view(),
                             .residual = gated ? other.view() : y.view()};
  finish(epilogue, y.view());
  EXPECT_TRUE(y.SurroundingsAreZero());
  const Values values = y.values();
  for (size_t i = 0; i < values.size(); ++i) {
    const double expected =
        Reference(c.activation, sums[i] + stored(bias[i % columns])) * stored(gate[i]) +
        stored(residual[i]);
    const double rounding = c.dtype == DType::kBF16 ? 0x1p-8 * std::abs(expected) : 0;
    ASSERT_NEAR(values[i], expected, rounding + error);
  }
}

// The products are less than one in magnitude.
void ExpectLinear(const Case& c) {
  Device device;
  const auto stored = [&](float x) { return double{Stored(c.dtype, x)}; };
  const Values x = RandomValues(c.rows * kIn, 1);
  const Values w = RandomValues(c.out * kIn, 2);
  const auto columns = static_cast<size_t>(c.out);
  std::vector<double> sums(static_cast<size_t>(c.rows * c.out));
  for (size_t i = 0; i < sums.size(); ++i) {
    for (size_t k = 0; k < kIn; ++k) {
      sums[i] += stored(x[i / columns * kIn + k]) * stored(w[i % columns * kIn + k]);
    }
  }
  const HostMatrix host = {w.data(), DType::kF32, c.out, kIn};
  const auto weights = PackLinear(device, std::span(&host, 1), c.dtype);
  const DeviceMatrix dx(device, {c.rows, kIn, c.dtype}, x);
  ExpectEpilogue(
      device, c, sums, 2 * Gamma(kIn + 20) * kIn, [&](const Epilogue& epilogue, const Tensor& y) {
        Linear(device, nullptr, {.x = dx.view(), .w = *weights, .epilogue = epilogue, .y = y});
      });
}

// The sums are at most one in magnitude, and so is what is added.
void ExpectFinish(const Case& c) {
  Device device;
  const Values sums = RandomValues(c.rows * c.out, 1);
  const DeviceMatrix dsums(device, {c.rows, c.out, DType::kF32, 3 * c.gap}, sums);
  ExpectEpilogue(device, c, {sums.begin(), sums.end()}, 2 * Gamma(20),
                 [&](const Epilogue& epilogue, const Tensor& y) {
                   FinishLinear(device, dsums.view(), epilogue, y);
                 });
}

template <typename Check>
void ForEveryCase(const Check& check) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const Activation activation : kActivations) {
      for (const Alias alias : {Alias::kGate, Alias::kResidual}) {
        for (const int64_t rows : {1, 3, 11}) {
          check(Case{dtype, activation, rows, alias, 35, 1});
          check(Case{dtype, activation, rows, alias, 36, 4});
        }
      }
    }
  }
}

TEST(LinearEpilogueTest, AddsBiasThenActivatesThenGatesThenAddsTheResidual) {
  ForEveryCase(ExpectLinear);
}

TEST(LinearFinishTest, DoesTheSameToSums) { ForEveryCase(ExpectFinish); }

TEST(LinearFinishTest, TakesWideRowsAndNoEpilogue) {
  Device device;
  const Values sums = RandomValues(2 * 2500, 1);
  for (const int64_t gap : {1, 4}) {
    const DeviceMatrix from(device, {2, 2500, DType::kF32, 3 * gap}, sums);
    const DeviceMatrix y(device, {2, 2500, DType::kF32, gap});
    FinishLinear(device, from.view(), {}, y.view());
    EXPECT_EQ(y.values(), sums);
    EXPECT_TRUE(y.SurroundingsAreZero());
  }
}

}  // namespace
}  // namespace hippodrome::cuda::linear_epilogue_test
