#include "kernels/ssm/nplr_modes.h"

#include <cmath>

namespace hippodrome {
namespace {

using Complex = std::complex<double>;

std::vector<Complex> ComplexRow(std::span<const float> values, int64_t row, int64_t modes) {
  std::vector<Complex> out;
  for (int64_t n = 0; n < modes; ++n) {
    const auto at = static_cast<size_t>(2 * (row * modes + n));
    out.emplace_back(values[at], values[at + 1]);
  }
  return out;
}

// What the formulas share.
struct LowRank {
  explicit LowRank(const NplrNumbers& x) : h(x.dt / 2) {
    double sum = 0;
    for (size_t n = 0; n < x.p.size(); ++n) {
      r.push_back(1.0 / (1.0 - h * x.lambda[n]));
      sum += 2 * std::norm(x.p[n]) * r[n].real();
      q += 2 * (std::conj(x.p[n]) * r[n] * x.b[n]).real();
    }
    inverse = 1 / (1 + h * sum);
    s = h * inverse;
  }

  double h;
  std::vector<Complex> r;  // R
  double inverse = 0;      // 1 / (1 + h P* R P)
  double s = 0;
  double q = 0;  // P* R B
};

}  // namespace

int64_t NplrRows(const NplrParameters& p) { return p.n_ssm == 0 ? p.channels : p.n_ssm; }

NplrNumbers NumbersOfChannel(const NplrParameters& p, int64_t channel) {
  const int64_t row = channel % NplrRows(p);
  NplrNumbers x = {.lambda = {},
                   .b = ComplexRow(p.b, row, p.modes),
                   .p = ComplexRow(p.p, row, p.modes),
                   .c = ComplexRow(p.c, channel, p.modes),
                   .dt = std::exp(double{p.log_step[static_cast<size_t>(channel)]})};
  for (int64_t n = 0; n < p.modes; ++n) {
    const auto at = static_cast<size_t>(row * p.modes + n);
    x.lambda.emplace_back(-std::exp(double{p.a_real[at]}), -double{p.a_imag[at]});
  }
  return x;
}

void DiscretizeNplr(const NplrNumbers& x, int64_t lane, NplrGroup& group) {
  const LowRank low(x);
  for (size_t i = 0; i < group.size(); ++i) {
    const Complex r = low.r[i];
    group[i].d.Set(lane, 2.0 * r - 1.0);
    group[i].u.Set(lane, 2 * low.s * r * x.p[i]);
    group[i].v.Set(lane, std::conj(x.p[i]) * r);
    group[i].b.Set(lane, x.dt * r * (x.b[i] - low.s * low.q * x.p[i]));
    group[i].c.Set(lane, x.c[i]);
  }
}

// Reverse order of the formulas above: d<name> is the gradient of <name>, complex ones as d / d Re
// + i d / d Im.
NplrNumbers DiscretizeNplrGradient(const NplrNumbers& x, int64_t lane, const NplrGroup& g) {
  const LowRank low(x);
  const size_t modes = x.lambda.size();
  NplrNumbers to = {.lambda = std::vector<Complex>(modes),
                    .b = std::vector<Complex>(modes),
                    .p = std::vector<Complex>(modes),
                    .c = {}};
  std::vector<Complex> dr(modes);
  double ds = 0;
  double dq = 0;
  for (size_t i = 0; i < modes; ++i) {
    const Complex r = low.r[i];
    const Complex p = x.p[i];
    to.c.push_back(g[i].c.Get(lane));
    // dB = dt R (B - s q P)
    const Complex inner = x.b[i] - low.s * low.q * p;
    const Complex db = g[i].b.Get(lane);
    const Complex dinner = x.dt * std::conj(r) * db;
    to.dt += (std::conj(r * inner) * db).real();
    to.b[i] = dinner;
    to.p[i] = -low.s * low.q * dinner;
    const double along = (std::conj(p) * dinner).real();
    ds -= low.q * along;
    dq -= low.s * along;
    dr[i] = x.dt * std::conj(inner) * db;
    // u = 2 s R P, v = conj(P) R, d = 2 R - 1
    const Complex du = g[i].u.Get(lane);
    const Complex dv = g[i].v.Get(lane);
    ds += 2 * (std::conj(r * p) * du).real();
    to.p[i] += 2 * low.s * std::conj(r) * du + std::conj(dv) * r;
    dr[i] += 2 * low.s * std::conj(p) * du + p * dv + 2.0 * g[i].d.Get(lane);
  }
  const double dsum = -low.s * low.s * ds;  // of P* R P
  double dh = low.inverse * low.inverse * ds;
  for (size_t i = 0; i < modes; ++i) {
    const Complex r = low.r[i];
    const Complex p = x.p[i];
    // q = 2 Re sum conj(P) R B
    to.b[i] += 2 * dq * p * std::conj(r);
    to.p[i] += 2 * dq * r * x.b[i];
    dr[i] += 2 * dq * p * std::conj(x.b[i]);
    // P* R P = 2 Re sum |P|^2 R
    to.p[i] += 4 * dsum * r.real() * p;
    dr[i] += 2 * dsum * std::norm(p);
    // R = 1 / (1 - h Lambda)
    const Complex slope = std::conj(r * r) * dr[i];
    to.lambda[i] = low.h * slope;
    dh += (std::conj(x.lambda[i]) * slope).real();
  }
  to.dt += dh / 2;
  return to;
}

}  // namespace hippodrome
