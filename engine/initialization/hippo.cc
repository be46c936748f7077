#include "engine/initialization/hippo.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <utility>

namespace hippodrome {
namespace {

using Complex = std::complex<double>;

// ---- Hermitian matrices, by Jacobi's method -----------------------------------------------------

// Far more than convergence, which is quadratic, takes.
constexpr int kSweeps = 60;

class Jacobi {
 public:
  Jacobi(std::vector<Complex> a, int64_t n) : n_(static_cast<size_t>(n)), a_(std::move(a)) {
    v_.resize(n_ * n_);
    for (size_t i = 0; i < n_; ++i) v_[i * n_ + i] = 1;
  }

  void Run() {
    double norm = 0;
    for (const Complex& value : a_) norm += std::norm(value);
    const double enough = norm * std::pow(std::numeric_limits<double>::epsilon(), 2);
    for (int sweep = 0; sweep < kSweeps && OffDiagonal() > enough; ++sweep) {
      for (size_t p = 0; p < n_; ++p) {
        for (size_t q = p + 1; q < n_; ++q) Rotate(p, q);
      }
    }
  }

  HermitianEigen Sorted() const {
    std::vector<size_t> order(n_);
    std::iota(order.begin(), order.end(), size_t{0});
    std::sort(order.begin(), order.end(),
              [&](size_t i, size_t j) { return a_[i * n_ + i].real() < a_[j * n_ + j].real(); });
    HermitianEigen eigen;
    for (const size_t i : order) eigen.values.push_back(a_[i * n_ + i].real());
    for (size_t row = 0; row < n_; ++row) {
      for (const size_t i : order) eigen.vectors.push_back(v_[row * n_ + i]);
    }
    return eigen;
  }

 private:
  double OffDiagonal() const {
    double sum = 0;
    for (size_t i = 0; i < n_; ++i) {
      for (size_t j = 0; j < n_; ++j) sum += i == j ? 0 : std::norm(a_[i * n_ + j]);
    }
    return sum;
  }

  // Makes element (p, q) zero: its phase e makes the two columns' product real, then as for
  // symmetric matrices.
  void Rotate(size_t p, size_t q) {
    const Complex element = a_[p * n_ + q];
    const double size = std::abs(element);
    if (size == 0) return;
    const Complex e = element / size;
    const double theta = (a_[q * n_ + q].real() - a_[p * n_ + p].real()) / (2 * size);
    const double t = (theta < 0 ? -1 : 1) / (std::abs(theta) + std::hypot(theta, 1.0));
    const double c = 1 / std::hypot(t, 1.0);
    const double s = t * c;
    // The columns become c x_p - s conj(e) x_q and s e x_p + c x_q; rows conjugated.
    const auto combine = [&](Complex& x_p, Complex& x_q, Complex phase) {
      const Complex first = c * x_p - s * std::conj(phase) * x_q;
      x_q = s * phase * x_p + c * x_q;
      x_p = first;
    };
    for (size_t i = 0; i < n_; ++i) {
      combine(a_[i * n_ + p], a_[i * n_ + q], e);
      combine(v_[i * n_ + p], v_[i * n_ + q], e);
    }
    for (size_t i = 0; i < n_; ++i) combine(a_[p * n_ + i], a_[q * n_ + i], std::conj(e));
    a_[p * n_ + q] = a_[q * n_ + p] = 0;
  }

  size_t n_;
  std::vector<Complex> a_, v_;
};

// ---- HiPPO
// ---------------------------------------------------------------------------------------

double Odd(int64_t n) { return static_cast<double>(2 * n + 1); }

// p[n] = sqrt(n + 1/2).
double LowRank(int64_t n) { return std::sqrt(static_cast<double>(n) + 0.5); }

// -i times the skew part of LegS: A + p p^T = -1/2 I + S, of which S[n][k] is -sqrt((2n+1)(2k+1)) /
// 2 for n > k and antisymmetric.
std::vector<Complex> HermitianPart(int64_t size) {
  std::vector<Complex> h;
  for (int64_t n = 0; n < size; ++n) {
    for (int64_t k = 0; k < size; ++k) {
      const double magnitude = n == k ? 0 : std::sqrt(Odd(n) * Odd(k)) / 2;
      h.emplace_back(0.0, n > k ? magnitude : -magnitude);
    }
  }
  return h;
}

}  // namespace

HermitianEigen SolveHermitian(std::vector<Complex> a, int64_t n) {
  Jacobi jacobi(std::move(a), n);
  jacobi.Run();
  return jacobi.Sorted();
}

LegS MakeLegS(int64_t size) {
  LegS legs = {.size = size, .a = {}, .b = {}};
  for (int64_t n = 0; n < size; ++n) {
    for (int64_t k = 0; k < size; ++k) {
      const double below = -std::sqrt(Odd(n) * Odd(k));
      legs.a.push_back(n > k ? below : n == k ? -static_cast<double>(n + 1) : 0.0);
    }
    legs.b.push_back(std::sqrt(Odd(n)));
  }
  return legs;
}

NplrLegS MakeNplrLegS(int64_t size) {
  assert(size % 2 == 0);
  const HermitianEigen eigen = SolveHermitian(HermitianPart(size), size);
  NplrLegS nplr;
  // Ascending: the last of the negative ones is the smallest.
  for (int64_t mode = size / 2 - 1; mode >= 0; --mode) {
    Complex p = 0;
    Complex b = 0;
    for (int64_t n = 0; n < size; ++n) {
      const Complex v = std::conj(eigen.vectors[static_cast<size_t>(n * size + mode)]);
      p += v * LowRank(n);
      b += v * std::sqrt(Odd(n));
    }
    nplr.lambda.emplace_back(-0.5, eigen.values[static_cast<size_t>(mode)]);
    nplr.p.push_back(p);
    nplr.b.push_back(b);
  }
  return nplr;
}

std::vector<double> LegSFrequencies(int64_t size) {
  return SolveHermitian(HermitianPart(size), size).values;
}

std::vector<double> LinearFrequencies(int64_t modes) {
  std::vector<double> frequencies;
  for (int64_t n = 0; n < modes; ++n) {
    frequencies.push_back(std::numbers::pi * static_cast<double>(n));
  }
  return frequencies;
}

std::vector<double> InverseFrequencies(int64_t modes, int64_t size) {
  const auto n = static_cast<double>(size);
  std::vector<double> frequencies;
  for (int64_t mode = 0; mode < modes; ++mode) {
    frequencies.push_back(n / std::numbers::pi * (n / Odd(mode) - 1));
  }
  return frequencies;
}

}  // namespace hippodrome
