// The kernel of a channel by its generating function, and its gradient.
#include <bit>
#include <cassert>
#include <cmath>
#include <numbers>
#include <vector>

#include "kernels/ssm/complex_math.h"
#include "kernels/ssm/nplr_modes.h"

namespace hippodrome {
namespace {

using Complex = std::complex<double>;

// conj(a) b.
Complex ConjugateTimes(Complex a, Complex b) { return Times(std::conj(a), b); }

// Both halves of the pairs; q_n below is a function of Lambda_n.
struct Pairs {
  explicit Pairs(const NplrNumbers& x)
      : lambda(Both(x.lambda)), b(Both(x.b)), p(Both(x.p)), c(Both(x.c)) {}
  explicit Pairs(size_t modes) : lambda(modes), b(modes), p(modes), c(modes), row(modes) {}

  static std::vector<Complex> Both(const std::vector<Complex>& half) {
    std::vector<Complex> all = half;
    for (const Complex& value : half) all.push_back(std::conj(value));
    return all;
  }

  std::vector<Complex> lambda, b, p, c;
  std::vector<Complex> row;  // P*, where it has a gradient of its own
};

// The generating function at one root w, with g = (1 + w) dt/2 and
// q_n = 1 / ((1 - w) - g Lambda_n): dt (S_cb - g S_cp S_pb / (1 + g S_pp)).
struct Node {
  Node(const Pairs& x, double dt, Complex w) : plus(1.0 + w), g(plus * (dt / 2)) {
    const Complex minus = 1.0 - w;
    for (size_t n = 0; n < x.lambda.size(); ++n) {
      const Complex denominator = minus - Times(g, x.lambda[n]);
      q.push_back(std::conj(denominator) / std::norm(denominator));
      const Complex qb = Times(q[n], x.b[n]);
      const Complex qp = Times(q[n], x.p[n]);
      cb += Times(x.c[n], qb);
      cp += Times(x.c[n], qp);
      pb += ConjugateTimes(x.p[n], qb);
      pp += ConjugateTimes(x.p[n], qp);
    }
    inverse = 1.0 / (1.0 + Times(g, pp));
    low_rank = Times(g, inverse);
    value = dt * (cb - Times(low_rank, Times(cp, pb)));
  }

  Complex plus, g;
  std::vector<Complex> q;
  Complex cb, cp, pb, pp;     // S
  Complex inverse, low_rank;  // 1 / (1 + g S_pp) and g times that
  Complex value;
};

Complex Root(int64_t j, int64_t n) {
  const double angle = 2 * std::numbers::pi * static_cast<double>(j) / static_cast<double>(n);
  return {std::cos(angle), -std::sin(angle)};
}

// Adds the gradients of x and dt, given that of the node's value.
void AddNodeGradient(const Pairs& x, double dt, const Node& node, Complex dvalue, Pairs& to,
                     double& ddt) {
  ddt += ConjugateTimes(node.value, dvalue).real() / dt;
  const Complex dcb = dt * dvalue;
  const Complex dcp = -ConjugateTimes(Times(node.low_rank, node.pb), dcb);
  const Complex dpb = -ConjugateTimes(Times(node.low_rank, node.cp), dcb);
  const Complex dlow_rank = -ConjugateTimes(Times(node.cp, node.pb), dcb);
  const Complex dpp = -ConjugateTimes(Times(node.low_rank, node.low_rank), dlow_rank);
  Complex dg = ConjugateTimes(Times(node.inverse, node.inverse), dlow_rank);
  for (size_t n = 0; n < x.lambda.size(); ++n) {
    const Complex q = node.q[n];
    const Complex row = std::conj(x.p[n]);
    const Complex from_c = ConjugateTimes(x.c[n], dcb);  // of q b, without the row's part
    const Complex dqb = from_c + ConjugateTimes(row, dpb);
    const Complex dqp = ConjugateTimes(x.c[n], dcp) + ConjugateTimes(row, dpp);
    to.c[n] += ConjugateTimes(q, ConjugateTimes(x.b[n], dcb) + ConjugateTimes(x.p[n], dcp));
    to.row[n] += ConjugateTimes(q, ConjugateTimes(x.b[n], dpb) + ConjugateTimes(x.p[n], dpp));
    to.b[n] += ConjugateTimes(q, dqb);
    to.p[n] += ConjugateTimes(q, dqp);
    const Complex dq = ConjugateTimes(x.b[n], dqb) + ConjugateTimes(x.p[n], dqp);
    const Complex ddenominator = ConjugateTimes(Times(q, q), dq);  // of -1 times it
    to.lambda[n] += ConjugateTimes(node.g, ddenominator);
    dg += ConjugateTimes(x.lambda[n], ddenominator);
  }
  ddt += ConjugateTimes(node.plus, dg).real() / 2;
}

// exp(-2 pi i j / n), j < n.
std::vector<Complex> Roots(int64_t n) {
  std::vector<Complex> roots;
  for (int64_t j = 0; j < n; ++j) {
    const double angle = -2 * std::numbers::pi * static_cast<double>(j) / static_cast<double>(n);
    roots.emplace_back(std::cos(angle), std::sin(angle));
  }
  return roots;
}

// The transform of x[0], x[stride], ..., of which there are `size`, a power of two.
void PowerOfTwoDft(const Complex* x, size_t stride, size_t size, const std::vector<Complex>& roots,
                   Complex* out) {
  if (size == 1) {
    *out = *x;
    return;
  }
  const size_t half = size / 2;
  PowerOfTwoDft(x, 2 * stride, half, roots, out);
  PowerOfTwoDft(x + stride, 2 * stride, half, roots, out + half);
  for (size_t j = 0; j < half; ++j) {
    const Complex odd = Times(roots[j * stride], out[j + half]);
    out[j + half] = out[j] - odd;
    out[j] += odd;
  }
}

// X[j] = sum_l x[l] exp(-2 pi i j l / n), j < n, of n complex values. Time n log n for powers of
// two, else n^2.
std::vector<Complex> Dft(const std::vector<Complex>& x) {
  const size_t n = x.size();
  const std::vector<Complex> roots = Roots(static_cast<int64_t>(n));
  std::vector<Complex> out(n);
  if (std::has_single_bit(n)) {
    PowerOfTwoDft(x.data(), 1, n, roots, out.data());
    return out;
  }
  for (size_t j = 0; j < n; ++j) {
    for (size_t l = 0; l < n; ++l) out[j] += Times(roots[j * l % n], x[l]);
  }
  return out;
}

// X[j] = sum_l x[l] exp(-2 pi i j l / n), j <= n / 2, of x followed by zeros.
std::vector<Complex> RealDft(std::span<const double> x, int64_t n) {
  assert(static_cast<int64_t>(x.size()) <= n);
  std::vector<Complex> padded(x.begin(), x.end());
  padded.resize(static_cast<size_t>(n));
  std::vector<Complex> spectrum = Dft(padded);
  spectrum.resize(static_cast<size_t>(n / 2 + 1));
  return spectrum;
}

// The first x.size() of the n real values that have the spectrum X[0 .. n / 2].
void InverseRealDft(std::span<const Complex> spectrum, int64_t n, std::span<double> x) {
  assert(static_cast<int64_t>(spectrum.size()) == n / 2 + 1 && static_cast<int64_t>(x.size()) <= n);
  // x[l] is the conjugate of the transform of the conjugate spectrum, and real.
  std::vector<Complex> whole(static_cast<size_t>(n));
  for (size_t j = 0; j < whole.size(); ++j) {
    whole[j] = j < spectrum.size() ? std::conj(spectrum[j]) : spectrum[whole.size() - j];
  }
  const std::vector<Complex> values = Dft(whole);
  for (size_t l = 0; l < x.size(); ++l) x[l] = values[l].real() / static_cast<double>(n);
}

}  // namespace

void NplrCircularKernel(const NplrNumbers& x, int64_t n, std::span<double> kernel) {
  const Pairs pairs(x);
  std::vector<Complex> spectrum;
  for (int64_t j = 0; 2 * j <= n; ++j) {
    spectrum.push_back(Node(pairs, x.dt, Root(j, n)).value);
  }
  InverseRealDft(spectrum, n, kernel);
}

NplrNumbers NplrCircularGradient(const NplrNumbers& x, int64_t n, std::span<const double> dk) {
  const Pairs pairs(x);
  const std::vector<Complex> spectrum = RealDft(dk, n);
  const size_t modes = x.lambda.size();
  Pairs sums(2 * modes);
  double ddt = 0;
  for (int64_t j = 0; 2 * j <= n; ++j) {
    // K[l] = Re sum_j m_j / n value_j w_j^-l, m_j = 2 but for the real nodes.
    const double weight = (j == 0 || 2 * j == n ? 1.0 : 2.0) / static_cast<double>(n);
    AddNodeGradient(pairs, x.dt, Node(pairs, x.dt, Root(j, n)),
                    weight * spectrum[static_cast<size_t>(j)], sums, ddt);
  }
  NplrNumbers to = {.lambda = {}, .b = {}, .p = {}, .c = {}, .dt = ddt};
  for (size_t i = 0; i < modes; ++i) {
    const size_t pair = i + modes;
    to.lambda.push_back(sums.lambda[i] + std::conj(sums.lambda[pair]));
    to.b.push_back(sums.b[i] + std::conj(sums.b[pair]));
    to.c.push_back(sums.c[i] + std::conj(sums.c[pair]));
    to.p.push_back(sums.p[i] + std::conj(sums.p[pair]) + std::conj(sums.row[i]) + sums.row[pair]);
  }
  return to;
}

}  // namespace hippodrome
