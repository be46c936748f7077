#include "tests/reference/diagonal_ssm.h"

#include <algorithm>
#include <cmath>

namespace hippodrome::reference {

using Complex = std::complex<double>;

namespace {

// A, from number i of the stored ones.
Complex StateMatrix(const DiagonalSsmParameters& p, int64_t i) {
  const double re = p.a_real[i];
  const double im = p.a_imag[i];
  switch (p.form) {
    case StateMatrixForm::kClamped:
      return {std::min(re, -1e-4), im};
    case StateMatrixForm::kExpReal:
      return {-std::exp(re), im};
    case StateMatrixForm::kExpBoth:
      return {-std::exp(re), std::exp(im)};
  }
  return {};
}

}  // namespace

DiagonalSsm::DiagonalSsm(const DiagonalSsmParameters& p, int64_t longest)
    : LongConvSsm(longest, p.channels, p.modes),
      channels_per_head_(p.channels / p.heads),
      scale_(p.scale) {
  const int64_t rows = p.n_ssm == 0 ? p.heads : p.n_ssm;
  for (int64_t h = 0; h < p.heads; ++h) {
    Head head;
    const double dt = p.log_step.empty() ? 1 : std::exp(double{p.log_step[h]});
    for (int64_t n = 0; n < p.modes; ++n) {
      const Complex a = StateMatrix(p, h % rows * p.modes + n);
      head.da.push_back(std::exp(dt * a));
      head.db.push_back((std::exp(dt * a) - 1.0) / a);
      head.c.emplace_back(p.c[2 * (h * p.modes + n)], p.c[2 * (h * p.modes + n) + 1]);
    }
    head.d = p.d[h];
    heads_.push_back(std::move(head));
  }
}

double DiagonalSsm::Step(int64_t channel, double u, State& x) const {
  const Head& head = heads_[channel / channels_per_head_];
  double y = head.d * u;
  for (size_t n = 0; n < x.size(); ++n) {
    x[n] = head.da[n] * x[n] + u;
    y += scale_ * (head.c[n] * head.db[n] * x[n]).real();
  }
  return y;
}

}  // namespace hippodrome::reference
