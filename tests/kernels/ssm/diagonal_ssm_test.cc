#include "kernels/ssm/diagonal_ssm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>

#include "tests/kernels/cpu/random_diagonal_ssm.h"

namespace hippodrome::diagonal_ssm_test {
namespace {

// K[l] = Re sum_n C_n (exp(dt A_n) - 1) / A_n exp(l dt A_n), term by term.
double KernelPoint(const DiagonalSsmParameters& p, int64_t head, int64_t l) {
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
      ASSERT_NEAR(kernel[size_t(h * length + l)], KernelPoint(p, h, l), 1e-11) << h << ", " << l;
    }
  }
}

TEST(DiagonalSsmTest, KernelIsTheSumOfItsModes) {
  for (const int64_t heads : {1, 3}) {
    for (const int64_t modes : {1, 5, 64}) {
      ExpectDiagonalKernel(RandomDiagonalSsm(6, heads, modes).parameters(), 1000);
    }
  }
}

TEST(DiagonalSsmTest, ModesAlwaysDecay) {
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

TEST(DiagonalSsmTest, KernelOfATinyStepHasNoCancellation) {
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

}  // namespace
}  // namespace hippodrome::diagonal_ssm_test
