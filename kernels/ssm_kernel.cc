#include "kernels/ssm_kernel.h"

#include <algorithm>
#include <cmath>

namespace hippodrome {
namespace {

using Complex = std::complex<double>;

// (e^z - 1) / z, by its series where e^z - 1 would cancel: the next term is below 1e-17.
Complex Phi1(Complex z) {
  if (std::abs(z) >= 1e-2) return (std::exp(z) - 1.0) / z;
  Complex sum = 1.0;
  for (int k = 8; k >= 2; --k) sum = 1.0 + sum * z / static_cast<double>(k);
  return sum;
}

// One head's kernel. Modes are the inner loop, in arrays of their own, so that it vectorises.
class ModeStepper {
 public:
  ModeStepper(const Complex* a, const Complex* x, int64_t modes) {
    for (int64_t n = 0; n < modes; ++n) {
      a_re_.push_back(a[n].real());
      a_im_.push_back(a[n].imag());
      x_re_.push_back(x[n].real());
      x_im_.push_back(x[n].imag());
    }
  }

  // Returns Re sum_n x_n and multiplies each x_n by a_n.
  double Next() {
    double sum = 0;
    for (const double re : x_re_) sum += re;
    for (size_t n = 0; n < a_re_.size(); ++n) {
      const double re = x_re_[n] * a_re_[n] - x_im_[n] * a_im_[n];
      x_im_[n] = x_re_[n] * a_im_[n] + x_im_[n] * a_re_[n];
      x_re_[n] = re;
    }
    return sum;
  }

 private:
  std::vector<double> a_re_, a_im_, x_re_, x_im_;
};

}  // namespace

DiagonalModes Discretize(const H3Parameters& p) {
  DiagonalModes modes;
  modes.heads = p.d_model / p.head_dim;
  modes.modes = p.d_state / 2;
  for (int64_t h = 0; h < modes.heads; ++h) {
    const double dt = std::exp(double{p.log_dt[static_cast<size_t>(h)]});
    for (int64_t n = 0; n < modes.modes; ++n) {
      const auto ab = static_cast<size_t>(h % p.n_ssm * modes.modes + n);
      const auto at = static_cast<size_t>(h * modes.modes + n);
      const Complex a(-std::exp(double{p.inv_a_real[ab]}), p.a_imag[ab]);
      const Complex b(p.b[2 * ab], p.b[2 * ab + 1]);
      const Complex c(p.c[2 * at], p.c[2 * at + 1]);
      const Complex z = dt * a;
      const bool zoh = p.discretization == Discretization::kZoh;
      const Complex db = b * dt * (zoh ? Phi1(z) : 1.0 / (1.0 - z / 2.0));
      modes.da.push_back(zoh ? std::exp(z) : (1.0 + z / 2.0) / (1.0 - z / 2.0));
      modes.db.push_back(db);
      modes.weights.push_back(2.0 * c * db);
    }
  }
  return modes;
}

namespace {

// The same for the modes of an encoder's SSM: B = 1, all modes stored, hence no factor 2.
DiagonalModes Discretize(const SharedSsmParameters& p) {
  constexpr double kLargestRealPart = -1e-4;
  DiagonalModes modes;
  modes.heads = p.heads;
  modes.modes = p.modes;
  for (int64_t h = 0; h < p.heads; ++h) {
    const double dt = std::exp(double{p.log_step[static_cast<size_t>(h)]});
    for (int64_t n = 0; n < p.modes; ++n) {
      const auto at = static_cast<size_t>(h * p.modes + n);
      const Complex z =
          dt * Complex(std::min(double{p.a_real[at]}, kLargestRealPart), p.a_imag[at]);
      const Complex c(p.c[2 * at], p.c[2 * at + 1]);
      modes.da.push_back(std::exp(z));
      modes.db.push_back(dt * Phi1(z));
      modes.weights.push_back(c * modes.db.back());
    }
  }
  return modes;
}

std::vector<double> AllKernels(const DiagonalModes& modes, int64_t length) {
  std::vector<double> kernels(static_cast<size_t>(modes.heads * length));
  for (int64_t h = 0; h < modes.heads; ++h) {
    HeadKernel(
        modes, h,
        std::span(kernels).subspan(static_cast<size_t>(h * length), static_cast<size_t>(length)));
  }
  return kernels;
}

}  // namespace

std::vector<double> DiagonalKernel(const H3Parameters& parameters, int64_t length) {
  return AllKernels(Discretize(parameters), length);
}

std::vector<double> SharedKernel(const SharedSsmParameters& parameters, int64_t length) {
  return AllKernels(Discretize(parameters), length);
}

void HeadKernel(const DiagonalModes& modes, int64_t head, std::span<double> kernel) {
  const int64_t first = head * modes.modes;
  ModeStepper stepper(modes.da.data() + first, modes.weights.data() + first, modes.modes);
  for (double& value : kernel) value = stepper.Next();
}

std::vector<double> ShiftTaps(const H3Parameters& p) {
  const int64_t n = p.d_state;
  std::vector<double> taps(static_cast<size_t>(p.d_model * n));
  for (int64_t channel = 0; channel < p.d_model; ++channel) {
    const float* b = p.shift_b.data() + channel * n;
    const float* c = p.shift_c.data() + channel * n;
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t i = 0; i + j < n; ++i) sum += double{b[i]} * c[i + j];
      taps[static_cast<size_t>(channel * n + j)] = sum;
    }
  }
  return taps;
}

}  // namespace hippodrome
