#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kernels/cuda/linear.h"
#include "kernels/cuda/linear_bias.h"
#include "tests/kernels/cpu/random_matrix.h"
#include "tests/kernels/cuda/device_matrix.h"

namespace hippodrome::cuda {
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

// The function of numbers one by one: as the bias of a product that is zero.
Values Activate(Activation activation, const Values& x) {
  Device device;
  const int64_t n = static_cast<int64_t>(x.size());
  const PackedWeights zero(device, n, 1, DType::kF32);
  const DeviceMatrix bias(device, {1, n}, x);
  const DeviceMatrix input(device, {1, 1});
  const DeviceMatrix y(device, {1, n});
  const Epilogue epilogue = {.bias = bias.view(), .activation = activation, .residual = {}};
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
  EXPECT_EQ(y[3], 0.5e-30f);
  EXPECT_TRUE(std::isnan(y[4]));
}

struct Case {
  DType dtype;  // of all matrices
  Activation activation;
  int64_t rows;
};

// y = activation(x W^T + bias) + residual, where the residual is y itself.
void ExpectEpilogue(const Case& c) {
  constexpr int64_t kIn = 24;
  constexpr int64_t kOut = 35;
  Device device;
  const auto stored = [&](float x) { return double{Stored(c.dtype, x)}; };
  const Values x = RandomValues(c.rows * kIn, 1);
  const Values w = RandomValues(kOut * kIn, 2);
  const Values bias = RandomValues(kOut, 3);
  const Values residual = RandomValues(c.rows * kOut, 4);
  const HostMatrix host = {w.data(), DType::kF32, kOut, kIn};
  const auto weights = PackLinear(device, std::span(&host, 1), c.dtype);
  const DeviceMatrix dx(device, {c.rows, kIn, c.dtype}, x);
  const DeviceMatrix dbias(device, {1, kOut, c.dtype, 1}, bias);
  const DeviceMatrix y(device, {c.rows, kOut, c.dtype, 5}, residual);
  const Epilogue epilogue = {
      .bias = dbias.view(), .activation = c.activation, .residual = y.view()};
  Linear(device, nullptr, {.x = dx.view(), .w = *weights, .epilogue = epilogue, .y = y.view()});
  EXPECT_TRUE(y.SurroundingsAreZero());

  const Values values = y.values();
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t row = i / kOut;
    const size_t column = i % kOut;
    double sum = stored(bias[column]);
    for (size_t k = 0; k < kIn; ++k) sum += stored(x[row * kIn + k]) * stored(w[column * kIn + k]);
    const double expected = Reference(c.activation, sum) + stored(residual[i]);
    const double rounding = c.dtype == DType::kBF16 ? 0x1p-8 * std::abs(expected) : 0;
    // The products are less than one in magnitude.
    ASSERT_NEAR(values[i], expected, rounding + 2 * Gamma(kIn + 20) * kIn);
  }
}

TEST(LinearEpilogueTest, AddsBiasThenActivatesThenAddsTheResidual) {
  for (DType dtype : {DType::kF32, DType::kBF16}) {
    for (Activation activation : {Activation::kNone, Activation::kGeluTanh, Activation::kGeluErf}) {
      for (int64_t rows : {1, 3, 11}) ExpectEpilogue({dtype, activation, rows});
    }
  }
}

TEST(LinearBiasTest, AddsTheBiasToEveryRow) {
  Device device;
  const Values values = RandomValues(3 * 300, 1);
  const Values bias = RandomValues(300, 2);
  const DeviceMatrix y(device, {3, 300, DType::kF32, 7}, values);
  AddBias(device, DeviceMatrix(device, {1, 300}, bias).view(), y.view());
  const Values sums = y.values();
  for (size_t i = 0; i < sums.size(); ++i) ASSERT_EQ(sums[i], values[i] + bias[i % 300]);
  EXPECT_TRUE(y.SurroundingsAreZero());
}

}  // namespace
}  // namespace hippodrome::cuda
