#include "tests/reference/nplr_ssm.h"

#include <cmath>
#include <utility>

namespace hippodrome::reference {
namespace {

using Complex = std::complex<double>;
using Vector = std::vector<Complex>;

// A square matrix, row after row.
struct Square {
  explicit Square(size_t size, Complex diagonal = 0.0) : n(size), values(size * size) {
    for (size_t i = 0; i < n; ++i) (*this)(i, i) = diagonal;
  }
  Complex& operator()(size_t i, size_t j) { return values[i * n + j]; }
  Complex operator()(size_t i, size_t j) const { return values[i * n + j]; }

  size_t n;
  Vector values;
};

Square Times(const Square& a, const Square& b) {
  Square product(a.n);
  for (size_t i = 0; i < a.n; ++i) {
    for (size_t k = 0; k < a.n; ++k) {
      for (size_t j = 0; j < a.n; ++j) product(i, j) += a(i, k) * b(k, j);
    }
  }
  return product;
}

Square Transposed(const Square& a) {
  Square t(a.n);
  for (size_t i = 0; i < a.n; ++i) {
    for (size_t j = 0; j < a.n; ++j) t(i, j) = a(j, i);
  }
  return t;
}

// a^-1 x, by elimination with the largest pivots.
Vector Solve(Square a, Vector x) {
  for (size_t k = 0; k < a.n; ++k) {
    size_t pivot = k;
    for (size_t i = k + 1; i < a.n; ++i) {
      if (std::abs(a(i, k)) > std::abs(a(pivot, k))) pivot = i;
    }
    for (size_t j = 0; j < a.n; ++j) std::swap(a(k, j), a(pivot, j));
    std::swap(x[k], x[pivot]);
    for (size_t i = k + 1; i < a.n; ++i) {
      const Complex factor = a(i, k) / a(k, k);
      for (size_t j = k; j < a.n; ++j) a(i, j) -= factor * a(k, j);
      x[i] -= factor * x[k];
    }
  }
  for (size_t k = a.n; k-- > 0;) {
    for (size_t j = k + 1; j < a.n; ++j) x[k] -= a(k, j) * x[j];
    x[k] /= a(k, k);
  }
  return x;
}

// Row `row` of [rows, M, 2] and its conjugate.
Vector Pairs(std::span<const float> values, int64_t row, int64_t modes) {
  Vector all;
  for (int64_t n = 0; n < modes; ++n) {
    const int64_t i = 2 * (row * modes + n);
    all.emplace_back(values[i], values[i + 1]);
  }
  for (int64_t n = 0; n < modes; ++n) all.push_back(std::conj(all[n]));
  return all;
}

// A = diag(Lambda) - P P*.
Square StateMatrix(const NplrParameters& p, int64_t row) {
  const Vector low_rank = Pairs(p.p, row, p.modes);
  Square a(low_rank.size());
  for (size_t i = 0; i < a.n; ++i) {
    const int64_t at = row * p.modes + static_cast<int64_t>(i) % p.modes;
    const Complex lambda(-std::exp(double{p.a_real[at]}), -double{p.a_imag[at]});
    a(i, i) = static_cast<int64_t>(i) < p.modes ? lambda : std::conj(lambda);
    for (size_t j = 0; j < a.n; ++j) a(i, j) -= low_rank[i] * std::conj(low_rank[j]);
  }
  return a;
}

// I + factor a.
Square Shifted(Square a, double factor) {
  for (Complex& value : a.values) value *= factor;
  for (size_t i = 0; i < a.n; ++i) a(i, i) += 1.0;
  return a;
}

// The C of C (I - dA^length) = stored.
Vector Unfold(const Square& da, int64_t length, const Vector& stored) {
  Square power(da.n, 1.0);
  for (int64_t l = 0; l < length; ++l) power = Times(power, da);
  return Solve(Transposed(Shifted(power, -1)), stored);
}

}  // namespace

NplrSsm::Channel NplrSsm::MakeChannel(const NplrParameters& p, int64_t index) {
  const int64_t row = p.n_ssm == 0 ? index : index % p.n_ssm;
  const double dt = std::exp(double{p.log_step[index]});
  const Square a = StateMatrix(p, row);
  const Square left = Shifted(a, -dt / 2);
  const Square right = Shifted(a, dt / 2);
  Square da(a.n);
  for (size_t j = 0; j < a.n; ++j) {
    Vector column(a.n);
    for (size_t i = 0; i < a.n; ++i) column[i] = right(i, j);
    column = Solve(left, column);
    for (size_t i = 0; i < a.n; ++i) da(i, j) = column[i];
  }
  Channel channel;
  channel.db = Solve(left, Pairs(p.b, row, p.modes));
  for (Complex& value : channel.db) value *= dt;
  channel.c = Pairs(p.c, index, p.modes);
  if (p.c_length > 0) channel.c = Unfold(da, p.c_length, channel.c);
  channel.da = da.values;
  channel.d = p.d[index];
  return channel;
}

NplrSsm::NplrSsm(const NplrParameters& p, int64_t longest)
    : LongConvSsm(longest, p.channels, p.modes) {
  for (int64_t c = 0; c < p.channels; ++c) channels_.push_back(MakeChannel(p, c));
}

double NplrSsm::Step(int64_t index, double u, State& x) const {
  const Channel& channel = channels_[index];
  const State before = x;
  double y = channel.d * u;
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = channel.db[i] * u;
    for (size_t j = 0; j < x.size(); ++j) x[i] += channel.da[i * x.size() + j] * before[j];
    y += (channel.c[i] * x[i]).real();
  }
  return y;
}

void NplrSsm::Complete(State& x) const {
  for (int64_t n = 0; n < modes(); ++n) x[modes() + n] = std::conj(x[n]);
}

}  // namespace hippodrome::reference
