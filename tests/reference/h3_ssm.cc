#include "tests/reference/h3_ssm.h"

#include <cmath>

namespace hippodrome::reference {

double H3DiagonalSsm::Step(double u, std::vector<Complex>& x) const {
  double y = d * u;
  for (size_t n = 0; n < da.size(); ++n) {
    x[n] = da[n] * x[n] + db[n] * u;
    y += 2 * (c[n] * x[n]).real();
  }
  return y;
}

H3DiagonalSsm Discretize(const H3Parameters& p, int64_t head) {
  const int64_t modes = p.d_state / 2;
  const int64_t row = head % p.n_ssm;
  const double dt = std::exp(double{p.log_dt[head]});
  H3DiagonalSsm ssm;
  ssm.d = p.d[head];
  for (int64_t n = 0; n < modes; ++n) {
    const int64_t a_at = row * modes + n;
    const int64_t c_at = head * modes + n;
    const Complex a(-std::exp(double{p.inv_a_real[a_at]}), p.a_imag[a_at]);
    const Complex b(p.b[2 * a_at], p.b[2 * a_at + 1]);
    const Complex z = dt * a;
    if (p.discretization == Discretization::kBilinear) {
      ssm.da.push_back((1.0 + z / 2.0) / (1.0 - z / 2.0));
      ssm.db.push_back(b * dt / (1.0 - z / 2.0));
    } else {
      ssm.da.push_back(std::exp(z));
      // (e^z - 1) / A = e^(z/2) dt sinh(z/2) / (z/2), without cancellation for small z.
      const Complex half = z / 2.0;
      const Complex ratio =
          std::abs(half) < 1e-4 ? 1.0 + half * half / 6.0 : std::sinh(half) / half;
      ssm.db.push_back(b * dt * std::exp(half) * ratio);
    }
    ssm.c.emplace_back(p.c[2 * c_at], p.c[2 * c_at + 1]);
  }
  return ssm;
}

double H3ShiftSsm::Step(double u, std::vector<double>& x) const {
  double y = d * u;
  for (size_t n = x.size(); n-- > 0;) {
    x[n] = (n > 0 ? x[n - 1] : 0.0) + b[n] * u;
    y += c[n] * x[n];
  }
  return y;
}

H3ShiftSsm Shift(const H3Parameters& p, int64_t channel) {
  H3ShiftSsm ssm;
  const auto at = static_cast<size_t>(channel * p.d_state);
  const auto n = static_cast<size_t>(p.d_state);
  const auto b = p.shift_b.subspan(at, n);
  const auto c = p.shift_c.subspan(at, n);
  ssm.b.assign(b.begin(), b.end());
  ssm.c.assign(c.begin(), c.end());
  ssm.d = p.shift_d[channel];
  return ssm;
}

}  // namespace hippodrome::reference
