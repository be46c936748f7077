#include "kernels/ssm/long_conv_ssm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/random_long_conv.h"
#include "tests/reference/reference_backend.h"

namespace hippodrome::long_conv_ssm_test {
namespace {

// The kernels, [H, length]: what the reference answers to an impulse.
std::vector<double> ImpulseResponse(const RandomLongConv& ssm, int64_t length) {
  const LongConvShape shape = ShapeOf(ssm.parameters());
  const auto backend = MakeReferenceBackend();
  const auto weights = backend->PrepareLongConv(ssm.parameters(), length, DType::kF32);
  const OwnedTensor u = backend->NewTensor(length, shape.channels);
  const OwnedTensor y = backend->NewTensor(length, shape.channels);
  const std::vector<float> ones(size_t(shape.channels), 1.0f);
  backend->Upload(ones, u.view.Rows(0, 1));
  backend->LongConv(*weights, u, 1, Direction::kForward, y);
  std::vector<double> kernels;
  for (int64_t h = 0; h < shape.heads; ++h) {
    const int64_t channel = h * (shape.channels / shape.heads);
    for (int64_t l = 0; l < length; ++l) {
      kernels.push_back(static_cast<double*>(y.view.data)[l * y.view.stride + channel]);
    }
  }
  return kernels;
}

TEST(LongConvKernelTest, IsTheImpulseResponse) {
  for (const RandomLongConv& ssm : SmallLongConvs()) {
    for (const int64_t length : {1, 16, 50, 130}) {
      const std::vector<double> kernels = LongConvKernel(ssm.parameters(), length);
      const std::vector<double> expected = ImpulseResponse(ssm, length);
      ASSERT_EQ(kernels.size(), expected.size());
      for (size_t i = 0; i < kernels.size(); ++i) {
        ASSERT_NEAR(kernels[i], expected[i], 1e-12 * (1 + std::abs(expected[i])))
            << i << " of " << length << ", form " << ssm.parameters().index();
      }
    }
  }
}

// sum_i g_i K_i.
double Loss(const RandomLongConv& ssm, const std::vector<float>& g, int64_t length) {
  const std::vector<double> kernels = LongConvKernel(ssm.parameters(), length);
  double loss = 0;
  for (size_t i = 0; i < kernels.size(); ++i) loss += double{g[i]} * kernels[i];
  return loss;
}

// d loss / d value by differences of fourth order, whose error is of the order of h^4.
double Slope(RandomLongConv& ssm, float& value, const std::vector<float>& g, int64_t length) {
  const float before = value;
  const auto difference = [&](float h) {
    value = before + h;
    const double above = Loss(ssm, g, length);
    const double width = double{value};
    value = before - h;
    const double below = Loss(ssm, g, length);
    const double slope = (above - below) / (width - double{value});
    value = before;
    return slope;
  };
  constexpr float kStep = 0x1p-13f;
  return (4 * difference(kStep) - difference(2 * kStep)) / 3;
}

TEST(LongConvKernelGradientTest, IsTheSlopeOfTheKernels) {
  for (RandomLongConv ssm : SmallLongConvs()) {
    for (const int64_t length : {1, 40, 150}) {
      const auto heads = int64_t(ssm.d.size());
      const std::vector<float> g = RandomValues(heads * length, 9);
      RandomLongConv computed = ssm;
      LongConvKernelGradient(ssm.parameters(), std::vector<double>(g.begin(), g.end()), length,
                             computed.Gradients());
      const auto gradients = computed.Fields();
      for (const auto& [name, values] : ssm.Fields()) {
        const std::vector<float>* gradient = nullptr;
        for (const auto& field : gradients) {
          if (field.name == name) gradient = field.values;
        }
        double largest = 1e-3;
        for (const float value : *gradient) largest = std::max(largest, std::abs(double{value}));
        for (size_t i = 0; i < values->size(); ++i) {
          // The rounding of the result, and the error of the differences.
          ASSERT_NEAR((*gradient)[i], Slope(ssm, (*values)[i], g, length), 1e-6 * largest)
              << name << " " << i << ", length " << length << ", form " << ssm.parameters().index();
        }
      }
    }
  }
}

TEST(LongConvKernelGradientTest, ClampedRealPartsHaveNone) {
  RandomLongConv ssm(DiagonalSsmParameters{.channels = 1, .heads = 1, .modes = 3});
  ssm.a_real = {0.5f, -0.5f, -0.00005f};
  RandomLongConv gradients = ssm;
  LongConvKernelGradient(ssm.parameters(), std::vector<double>(20, 1.0), 20, gradients.Gradients());
  EXPECT_EQ(gradients.a_real[0], 0);
  EXPECT_NE(gradients.a_real[1], 0);
  EXPECT_EQ(gradients.a_real[2], 0);
  for (const float slope : gradients.a_imag) EXPECT_NE(slope, 0);
}

TEST(LongConvKernelGradientTest, TinyStepsHaveNoCancellation) {
  // K[0] = (exp(-dt) - 1) / -1: its slope by log_step is dt exp(-dt).
  RandomLongConv ssm(DiagonalSsmParameters{.channels = 1, .heads = 1, .modes = 1});
  ssm.a_real = {-1};
  ssm.a_imag = {0};
  ssm.c = {1, 0};
  for (const float log_step : {-2.0f, -4.5f, -5.0f, -20.0f}) {
    ssm.log_step = {log_step};
    RandomLongConv gradients = ssm;
    LongConvKernelGradient(ssm.parameters(), std::vector<double>{1.0}, 1, gradients.Gradients());
    const double dt = std::exp(double{log_step});
    EXPECT_NEAR(gradients.log_step[0], dt * std::exp(-dt), 1e-7 * dt);
    // d/dA (exp(dt A) - 1) / A at -1.
    const double slope = dt > 1e-3 ? 1 - std::exp(-dt) - dt * std::exp(-dt) : dt * dt / 2;
    EXPECT_NEAR(gradients.a_real[0], slope, 1e-6 * dt * dt);
  }
}

}  // namespace
}  // namespace hippodrome::long_conv_ssm_test
