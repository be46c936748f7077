#include "kernels/ssm/real_dft.h"

#include <bit>
#include <cassert>
#include <cmath>
#include <numbers>

namespace hippodrome {
namespace {

using Complex = std::complex<double>;

Complex Times(Complex a, Complex b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
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
void Transform(const Complex* x, size_t stride, size_t size, const std::vector<Complex>& roots,
               Complex* out) {
  if (size == 1) {
    *out = *x;
    return;
  }
  const size_t half = size / 2;
  Transform(x, 2 * stride, half, roots, out);
  Transform(x + stride, 2 * stride, half, roots, out + half);
  for (size_t j = 0; j < half; ++j) {
    const Complex odd = Times(roots[j * stride], out[j + half]);
    out[j + half] = out[j] - odd;
    out[j] += odd;
  }
}

// X[j] = sum_l x[l] exp(-2 pi i j l / n), j < n, of n complex values.
std::vector<Complex> Dft(const std::vector<Complex>& x) {
  const size_t n = x.size();
  const std::vector<Complex> roots = Roots(static_cast<int64_t>(n));
  std::vector<Complex> out(n);
  if (std::has_single_bit(n)) {
    Transform(x.data(), 1, n, roots, out.data());
    return out;
  }
  for (size_t j = 0; j < n; ++j) {
    for (size_t l = 0; l < n; ++l) out[j] += Times(roots[j * l % n], x[l]);
  }
  return out;
}

}  // namespace

std::vector<Complex> RealDft(std::span<const double> x, int64_t n) {
  assert(static_cast<int64_t>(x.size()) <= n);
  std::vector<Complex> padded(x.begin(), x.end());
  padded.resize(static_cast<size_t>(n));
  std::vector<Complex> spectrum = Dft(padded);
  spectrum.resize(static_cast<size_t>(n / 2 + 1));
  return spectrum;
}

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

}  // namespace hippodrome
