// The gradients of the parameters of a diagonal SSM.
#include <algorithm>
#include <cmath>

#include "tests/reference/training/long_conv_backward.h"
#include "tests/reference/training/mode_gradient.h"
#include "tests/reference/training/parameter_sums.h"

namespace hippodrome::reference {
namespace {

using Complex = std::complex<double>;

constexpr double kLargestRealPart = -1e-4;

// A of one mode, and its derivatives by the numbers that it is stored as.
struct StateMatrixEntry {
  Complex a, by_real, by_imag;
};

StateMatrixEntry EntryOf(StateMatrixForm form, double a_real, double a_imag) {
  const Complex i(0, 1);
  switch (form) {
    case StateMatrixForm::kClamped:
      return {Complex(std::min(a_real, kLargestRealPart), a_imag),
              a_real <= kLargestRealPart ? 1.0 : 0.0, i};
    case StateMatrixForm::kExpReal:
      return {Complex(-std::exp(a_real), a_imag), -std::exp(a_real), i};
    case StateMatrixForm::kExpBoth:
      return {Complex(-std::exp(a_real), std::exp(a_imag)), -std::exp(a_real),
              i * std::exp(a_imag)};
  }
  return {};
}

}  // namespace

void TakeDiagonalSsmGradients(const DiagonalSsmParameters& p, const LongConvKernelGradients& sums,
                              const LongConvParameterGradients& gradients) {
  const Complex i(0, 1);
  const int64_t n_ssm = p.n_ssm == 0 ? p.heads : p.n_ssm;
  ParameterSums da_real(gradients.a_real);
  ParameterSums da_imag(gradients.a_imag);
  ParameterSums dc(gradients.c);
  ParameterSums dlog_step(gradients.log_step);
  ParameterSums dd(gradients.d);
  for (int64_t h = 0; h < p.heads; ++h) {
    dd.Add(h, sums.Skip(h, p.heads));
    const std::vector<double> dk = sums.Kernel(h, p.heads);
    const double dt = p.log_step.empty() ? 1 : std::exp(double{p.log_step[h]});
    for (int64_t n = 0; n < p.modes; ++n) {
      const int64_t at = h * p.modes + n;
      const int64_t a_at = h % n_ssm * p.modes + n;
      const StateMatrixEntry entry = EntryOf(p.form, p.a_real[a_at], p.a_imag[a_at]);
      const Mode mode = {
          .a = entry.a, .b = 1, .c = Complex(p.c[2 * at], p.c[2 * at + 1]), .dt = dt};
      const ModeGradient gradient(mode, Discretization::kZoh, p.scale, dk);
      da_real.Add(a_at, gradient.Along({.a = entry.by_real}));
      da_imag.Add(a_at, gradient.Along({.a = entry.by_imag}));
      dc.Add(2 * at, gradient.Along({.c = 1}));
      dc.Add(2 * at + 1, gradient.Along({.c = i}));
      dlog_step.Add(h, gradient.Along({.dt = dt}));
    }
  }
}

}  // namespace hippodrome::reference
