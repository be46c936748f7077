#include "kernels/ssm/nplr_modes.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

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

// A real square matrix, row after row, on states (Re x, Im x).
class PairMatrix {
 public:
  explicit PairMatrix(size_t size) : size_(size), values_(size * size) {}
  double* Row(size_t i) { return values_.data() + i * size_; }
  const double* Row(size_t i) const { return values_.data() + i * size_; }
  size_t size() const { return size_; }

 private:
  size_t size_;
  std::vector<double> values_;
};

PairMatrix Product(const PairMatrix& a, const PairMatrix& b) {
  PairMatrix product(a.size());
  for (size_t i = 0; i < a.size(); ++i) {
    double* row = product.Row(i);
    for (size_t k = 0; k < a.size(); ++k) {
      const double factor = a.Row(i)[k];
      const double* from = b.Row(k);
      for (size_t j = 0; j < a.size(); ++j) row[j] += factor * from[j];
    }
  }
  return product;
}

// a^exponent, exponent >= 1.
PairMatrix Power(const PairMatrix& a, int64_t exponent) {
  PairMatrix power = a;
  for (int bit = static_cast<int>(std::bit_width(static_cast<uint64_t>(exponent))) - 2; bit >= 0;
       --bit) {
    power = Product(power, power);
    if ((exponent >> bit & 1) != 0) power = Product(power, a);
  }
  return power;
}

// dA of one lane: x' = d x - u r, r = 2 Re sum_n v_n x_n.
PairMatrix TransitionMatrix(const NplrGroup& group, int64_t lane) {
  const size_t modes = group.size();
  PairMatrix a(2 * modes);
  for (size_t i = 0; i < modes; ++i) {
    const Complex d = group[i].d.Get(lane);
    const Complex u = group[i].u.Get(lane);
    for (size_t j = 0; j < modes; ++j) {
      const Complex v = 2.0 * group[j].v.Get(lane);
      a.Row(i)[j] = -u.real() * v.real();
      a.Row(i)[modes + j] = u.real() * v.imag();
      a.Row(modes + i)[j] = -u.imag() * v.real();
      a.Row(modes + i)[modes + j] = u.imag() * v.imag();
    }
    a.Row(i)[i] += d.real();
    a.Row(i)[modes + i] -= d.imag();
    a.Row(modes + i)[i] += d.imag();
    a.Row(modes + i)[modes + i] += d.real();
  }
  return a;
}

// Replaces x by a^-1 x.
void Solve(PairMatrix a, std::vector<double>& x) {
  const size_t size = a.size();
  for (size_t k = 0; k < size; ++k) {
    size_t pivot = k;
    for (size_t i = k + 1; i < size; ++i) {
      if (std::abs(a.Row(i)[k]) > std::abs(a.Row(pivot)[k])) pivot = i;
    }
    std::swap_ranges(a.Row(k), a.Row(k) + size, a.Row(pivot));
    std::swap(x[k], x[pivot]);
    for (size_t i = k + 1; i < size; ++i) {
      const double factor = a.Row(i)[k] / a.Row(k)[k];
      for (size_t j = k; j < size; ++j) a.Row(i)[j] -= factor * a.Row(k)[j];
      x[i] -= factor * x[k];
    }
  }
  for (size_t k = size; k-- > 0;) {
    for (size_t j = k + 1; j < size; ++j) x[k] -= a.Row(k)[j] * x[j];
    x[k] /= a.Row(k)[k];
  }
}

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

// A row c of outputs is (Re c, -Im c) on (Re x, Im x), and c (I - dA^n) = c~ a system in the
// transpose.
void UnfoldOutput(int64_t length, NplrNumbers& x) {
  const size_t modes = x.c.size();
  NplrGroup group(modes);
  DiscretizeNplr(x, 0, group);
  const PairMatrix power = Power(TransitionMatrix(group, 0), length);
  PairMatrix system(2 * modes);
  for (size_t i = 0; i < 2 * modes; ++i) {
    for (size_t j = 0; j < 2 * modes; ++j) system.Row(i)[j] = (i == j ? 1 : 0) - power.Row(j)[i];
  }
  std::vector<double> c(2 * modes);
  for (size_t n = 0; n < modes; ++n) {
    c[n] = x.c[n].real();
    c[modes + n] = -x.c[n].imag();
  }
  Solve(std::move(system), c);
  for (size_t n = 0; n < modes; ++n) x.c[n] = {c[n], -c[modes + n]};
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
