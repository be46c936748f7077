#include "kernels/cuda/conv/fft_tables.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <numbers>

namespace hippodrome::cuda {
namespace {

// exp(-2 pi i j / n)
std::complex<double> Root(int64_t j, int64_t n) {
  return std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(j) / static_cast<double>(n));
}

}  // namespace

std::vector<std::complex<float>> FftTwiddles(int points) {
  std::vector<std::complex<float>> table;
  const auto append = [&](int64_t p, int64_t n, int power) {
    table.emplace_back(Root(p, n));
    table.emplace_back(Root(power * p, n));
  };
  for (int n = points; n > kFftValues; n /= kFftValues) {
    for (int p = 0; p < n / kFftValues; ++p) append(p, n, 4);
  }
  for (int n = points / kFftValues; n > 1; n /= kFftValues) {
    const int step = std::max(n, kFftValues);  // positions from one pair to the next
    const int64_t turn = int64_t{points} / n * std::min(n, kFftValues);
    for (int position = 0; position < points; position += step) {
      append(FftFrequency(points, position), turn, n < kFftValues ? 2 : 4);
    }
  }
  assert(static_cast<int>(table.size()) == FftTwiddleCount(points));
  return table;
}

std::vector<std::complex<float>> RightAngleTurns(int points) {
  std::vector<std::complex<float>> turns;
  for (int t = 0; t < points / kFftValues; ++t) {
    turns.emplace_back(std::polar(1.0, std::numbers::pi * t / (2.0 * points)));
  }
  return turns;
}

std::vector<std::complex<double>> DoubleTransform(std::span<const std::complex<double>> z) {
  const size_t size = z.size();
  assert(std::has_single_bit(size));
  std::vector<std::complex<double>> roots(size / 2);
  for (size_t j = 0; j < roots.size(); ++j) {
    roots[j] = Root(static_cast<int64_t>(j), static_cast<int64_t>(size));
  }
  // Stockham's autosort: after s steps, element (p, f) of [size / 2^s, 2^s] is frequency f of the
  // points p, p + size / 2^s, ...
  std::vector<std::complex<double>> from(z.begin(), z.end());
  std::vector<std::complex<double>> to(size);
  for (size_t rows = size / 2, frequencies = 1; rows > 0; rows /= 2, frequencies *= 2) {
    for (size_t p = 0; p < rows; ++p) {
      for (size_t f = 0; f < frequencies; ++f) {
        const std::complex<double> a = from[p * frequencies + f];
        const std::complex<double> b = roots[f * rows] * from[(p + rows) * frequencies + f];
        to[p * 2 * frequencies + f] = a + b;
        to[(p * 2 + 1) * frequencies + f] = a - b;
      }
    }
    from.swap(to);
  }
  return from;
}

}  // namespace hippodrome::cuda
