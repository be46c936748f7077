#include "kernels/ssm/ssm_kernel.h"

#include <gtest/gtest.h>

#include "tests/kernels/cpu/h3/h3_problem.h"
#include "tests/kernels/cpu/random_diagonal_ssm.h"

namespace hippodrome::ssm_kernel_test {
namespace {

// K[l] = 2 Re sum_n C_n dB_n exp(l log dA_n).
double KernelPoint(const reference::H3DiagonalSsm& ssm, int64_t l) {
  double sum = 0;
  for (size_t n = 0; n < ssm.da.size(); ++n) {
    sum += 2 * (ssm.c[n] * ssm.db[n] * std::exp(double(l) * std::log(ssm.da[n]))).real();
  }
  return sum;
}

void ExpectKernel(const H3Parameters& p, int64_t length) {
  const std::vector<double> kernel = H3Kernel(p, length);
  const int64_t heads = p.d_model / p.head_dim;
  ASSERT_EQ(kernel.size(), size_t(heads * length));
  for (int64_t h = 0; h < heads; ++h) {
    const reference::H3DiagonalSsm ssm = reference::Discretize(p, h);
    for (int64_t l = 0; l < length; l += 1 + length / 100) {
      ASSERT_NEAR(kernel[size_t(h * length + l)], KernelPoint(ssm, l), 1e-10) << l;
    }
  }
}

TEST(SsmKernelTest, H3KernelIsTheSumOfItsModes) {
  for (const Discretization rule : {Discretization::kBilinear, Discretization::kZoh}) {
    for (const int64_t d_state : {2, 6, 64}) {
      ExpectKernel(
          RandomH3({.d_model = 12, .d_state = d_state, .discretization = rule}).parameters(), 3000);
    }
    ExpectKernel(
        RandomH3({.d_model = 12, .head_dim = 4, .n_ssm = 2, .discretization = rule}).parameters(),
        100);
  }
}

TEST(SsmKernelTest, LongKernelsStayExact) {
  ExpectKernel(RandomH3({.d_model = 1}).parameters(), 200000);
}

TEST(SsmKernelTest, ZohOfATinyStepHasNoCancellation) {
  RandomH3 layer({.d_model = 1, .d_state = 2, .discretization = Discretization::kZoh});
  H3Parameters p = layer.parameters();
  const float zero = 0;
  p.a_imag = std::span(&zero, 1);  // a real mode
  for (const float log_dt : {-2.0f, -4.5f, -5.0f, -20.0f, -60.0f}) {
    p.log_dt = std::span(&log_dt, 1);
    const DiagonalModes modes = Discretize(p);
    const double a = -std::exp(double{p.inv_a_real[0]});
    const double ratio = std::expm1(std::exp(double{log_dt}) * a) / a;
    EXPECT_NEAR(modes.db[0].real(), ratio * p.b[0], 1e-14 * ratio);
    EXPECT_NEAR(modes.db[0].imag(), ratio * p.b[1], 1e-14 * ratio);
  }
}

// K[l] = Re sum_n C_n (exp(dt A_n) - 1) / A_n exp(l dt A_n), term by term.
double SharedPoint(const DiagonalSsmParameters& p, int64_t head, int64_t l) {
  const double dt = std::exp(double{p.log_step[size_t(head)]});
  double sum = 0;
  for (int64_t n = 0; n < p.modes; ++n) {
    const size_t at = size_t(head * p.modes + n);
    const std::complex<double> a(std::min(double{p.a_real[at]}, -1e-4), p.a_imag[at]);
    const std::complex<double> c(p.c[2 * at], p.c[2 * at + 1]);
    sum += (c * (std::exp(dt * a) - 1.0) / a * std::exp(double(l) * dt * a)).real();
  }
  return sum;
}

void ExpectDiagonalKernel(const DiagonalSsmParameters& p, int64_t length) {
  const std::vector<double> kernel = DiagonalKernel(p, length);
  ASSERT_EQ(kernel.size(), size_t(p.heads * length));
  for (int64_t h = 0; h < p.heads; ++h) {
    for (int64_t l = 0; l < length; l += 1 + length / 100) {
      ASSERT_NEAR(kernel[size_t(h * length + l)], SharedPoint(p, h, l), 1e-11) << h << ", " << l;
    }
  }
}

TEST(SsmKernelTest, DiagonalKernelIsTheSumOfItsModes) {
  for (const int64_t heads : {1, 3}) {
    for (const int64_t modes : {1, 5, 64}) {
      ExpectDiagonalKernel(RandomDiagonalSsm(6, heads, modes).parameters(), 1000);
    }
  }
}

TEST(SsmKernelTest, SharedModesAlwaysDecay) {
  const RandomDiagonalSsm ssm(1, 1, 3);
  DiagonalSsmParameters p = ssm.parameters();
  const float growing[] = {2.0f, 0.0f, -0.00005f};
  p.a_real = growing;
  ExpectDiagonalKernel(p, 300);
  const float clamped[] = {-1e-4f, -1e-4f, -1e-4f};
  const std::vector<double> kernel = DiagonalKernel(p, 300);
  p.a_real = clamped;
  const std::vector<double> expected = DiagonalKernel(p, 300);
  for (size_t l = 0; l < 300; ++l) EXPECT_NEAR(kernel[l], expected[l], 1e-10);
}

TEST(SsmKernelTest, DiagonalKernelOfATinyStepHasNoCancellation) {
  const float zero = 0, one[] = {1, 0}, log_step = -30, a = -1;
  const DiagonalSsmParameters p = {.channels = 1,
                                   .heads = 1,
                                   .modes = 1,
                                   .a_real = {&a, 1},
                                   .a_imag = {&zero, 1},
                                   .c = one,
                                   .log_step = {&log_step, 1},
                                   .d = {&zero, 1}};
  const double expected = -std::expm1(-std::exp(-30.0));
  EXPECT_NEAR(DiagonalKernel(p, 1)[0], expected, 1e-14 * expected);
}

TEST(SsmKernelTest, ShiftTapsAreTheImpulseResponse) {
  const RandomH3 layer({.d_model = 5, .d_state = 10});
  const std::vector<double> taps = ShiftTaps(layer.parameters());
  ASSERT_EQ(taps.size(), 50u);
  for (int64_t channel = 0; channel < 5; ++channel) {
    reference::H3ShiftSsm ssm = reference::Shift(layer.parameters(), channel);
    ssm.d = 0;
    std::vector<double> x(10);
    for (int64_t j = 0; j < 10; ++j) {
      EXPECT_NEAR(ssm.Step(j == 0 ? 1 : 0, x), taps[size_t(channel * 10 + j)], 1e-14);
    }
    EXPECT_NEAR(ssm.Step(0, x), 0, 1e-14);
  }
}

}  // namespace
}  // namespace hippodrome::ssm_kernel_test
