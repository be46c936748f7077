#include "engine/initialization/hippo.h"

#include <cassert>
#include <cmath>
#include <numbers>

#include "engine/initialization/hermitian_eigen.h"

namespace hippodrome {
namespace {

using Complex = std::complex<double>;

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
