#include "kernels/ssm/ssm_kernel.h"

#include <cmath>

#include "kernels/ssm/mode_sum.h"
#include "kernels/ssm/nplr_kernel.h"
#include "kernels/ssm/phi.h"

namespace hippodrome {
namespace {

using Complex = std::complex<double>;

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
      const Complex exp_z = std::exp(z);
      const Complex db = b * dt * (zoh ? Phi1(z, exp_z) : 1.0 / (1.0 - z / 2.0));
      modes.da.push_back(zoh ? exp_z : (1.0 + z / 2.0) / (1.0 - z / 2.0));
      modes.db.push_back(db);
      modes.weights.push_back(2.0 * c * db);
    }
  }
  return modes;
}

std::vector<double> H3Kernel(const H3Parameters& parameters, int64_t length) {
  const DiagonalModes modes = Discretize(parameters);
  std::vector<double> kernels(static_cast<size_t>(modes.heads * length));
  for (int64_t h = 0; h < modes.heads; ++h) {
    HeadKernel(
        modes, h,
        std::span(kernels).subspan(static_cast<size_t>(h * length), static_cast<size_t>(length)));
  }
  return kernels;
}

void HeadKernel(const DiagonalModes& modes, int64_t head, std::span<double> kernel) {
  const auto first = static_cast<size_t>(head * modes.modes);
  const auto count = static_cast<size_t>(modes.modes);
  SumModes(std::span(modes.da).subspan(first, count),
           std::span(modes.weights).subspan(first, count), kernel);
}

LongConvShape ShapeOf(const LongConvParameters& parameters) {
  if (const auto* nplr = std::get_if<NplrParameters>(&parameters)) {
    return {nplr->channels, nplr->channels, nplr->d};
  }
  const auto& shared = std::get<DiagonalSsmParameters>(parameters);
  return {shared.channels, shared.heads, shared.d};
}

std::vector<double> ConvolutionKernel(const LongConvParameters& parameters, int64_t length,
                                      const HeadLoop& loop) {
  if (const auto* nplr = std::get_if<NplrParameters>(&parameters)) {
    return NplrKernel(*nplr, length, loop);
  }
  return DiagonalKernel(std::get<DiagonalSsmParameters>(parameters), length, loop);
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
