#include "tests/reference/diagonal_ssm.h"

#include <algorithm>
#include <cmath>

#include "tests/reference/matrix.h"

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
    : LongConvSsm(longest), channels_per_head_(p.channels / p.heads), scale_(p.scale) {
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

void DiagonalSsm::Apply(Tensor u, Direction direction, Tensor y) const {
  for (int64_t c = 0; c < u.cols; ++c) {
    const Head& head = heads_[c / channels_per_head_];
    std::vector<Complex> s(head.da.size());
    for (int64_t t = 0; t < u.rows; ++t) {
      const double u_t = At(u, Row(u, direction, t), c);
      double sum = head.d * u_t;
      for (size_t n = 0; n < s.size(); ++n) {
        s[n] = head.da[n] * s[n] + head.db[n] * u_t;
        sum += scale_ * (head.c[n] * s[n]).real();
      }
      At(y, Row(u, direction, t), c) = sum;
    }
  }
}

}  // namespace hippodrome::reference
