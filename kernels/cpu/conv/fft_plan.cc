// FftPlan, in double.
#include <bit>
#include <cassert>
#include <cmath>
#include <numbers>

#include "kernels/cpu/conv/fft.h"

namespace hippodrome::cpu {
namespace {

constexpr int64_t kShortest = 64;

// Radices of a transform of 2^bits points: 8 first and last, fours as needed, eights between.
std::vector<int> Radices(int bits) {
  int middle = bits - 6;
  std::vector<int> radices = {8};
  for (; middle % 3 != 0; middle -= 2) radices.push_back(4);
  for (; middle > 0; middle -= 3) radices.push_back(8);
  radices.push_back(8);
  return radices;
}

// In place, radix 2, natural order; roots[j * stride] = exp(-2 pi i j / n).
void Transform(std::vector<std::complex<double>>& x,
               const std::vector<std::complex<double>>& roots) {
  const size_t n = x.size();
  for (size_t i = 1, j = 0; i < n; ++i) {
    size_t bit = n >> 1;
    for (; (j & bit) != 0; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) std::swap(x[i], x[j]);
  }
  for (size_t half = 1; half < n; half *= 2) {
    const size_t stride = roots.size() / (2 * half);
    for (size_t block = 0; block < n; block += 2 * half) {
      for (size_t j = 0; j < half; ++j) {
        const std::complex<double> a = x[block + j];
        const std::complex<double> r = roots[j * stride];
        const std::complex<double> b = x[block + j + half];
        const std::complex<double> t(b.real() * r.real() - b.imag() * r.imag(),
                                     b.real() * r.imag() + b.imag() * r.real());
        x[block + j] = a + t;
        x[block + j + half] = a - t;
      }
    }
  }
}

}  // namespace

int64_t FftPlan::LengthFor(int64_t points) {
  int64_t length = kShortest;
  // 128 = 8 * 2 * 8 has no stage for the 2.
  while (length < points || length == 2 * kShortest) length *= 2;
  return length;
}

FftPlan::FftPlan(int64_t length) : length_(length) {
  assert(length == LengthFor(length));
  const int64_t quarter_turns = 4 * length;
  for (int64_t j = 0; j < quarter_turns; ++j) {
    const double angle =
        -2 * std::numbers::pi * static_cast<double>(j) / static_cast<double>(quarter_turns);
    roots_.emplace_back(std::cos(angle), std::sin(angle));
  }
  const int bits = std::countr_zero(static_cast<uint64_t>(length));
  order_ = {0};
  int64_t stage_length = length;
  int64_t step = 1;  // product of the radices so far
  for (const int radix : Radices(bits)) {
    const bool first = step == 1;
    FftStage stage = {stage_length, radix, {}};
    for (int64_t j = 0; j < stage_length / radix; ++j) {
      for (int64_t k = first ? 0 : 1; k < radix; ++k) {
        // exp(-2 pi i j k / stage_length), times w^j = exp(2 pi i j / (4 length)) at first.
        const int64_t turn = 4 * step * j * k - (first ? j : 0);
        const auto root = roots_[static_cast<size_t>((turn + quarter_turns) % quarter_turns)];
        stage.twiddles.push_back(static_cast<float>(root.real()));
        stage.twiddles.push_back(static_cast<float>(root.imag()));
      }
    }
    stages_.push_back(std::move(stage));
    // A stage sorts frequencies by their residue: position (k1, k2, ...) holds k1 + r1 k2 + ...
    std::vector<int64_t> order;
    order.reserve(order_.size() * static_cast<size_t>(radix));
    for (const int64_t frequency : order_) {
      for (int64_t k = 0; k < radix; ++k) order.push_back(frequency + step * k);
    }
    order_ = std::move(order);
    stage_length /= radix;
    step *= radix;
  }
}

void FftPlan::Spectrum(const double* kernel, int64_t points, std::complex<double>* spectrum) const {
  assert(points <= length_);
  std::vector<std::complex<double>> x(static_cast<size_t>(length_));
  for (size_t t = 0; t < static_cast<size_t>(points); ++t) {
    x[t] = std::conj(roots_[t]) * kernel[t] / static_cast<double>(length_);
  }
  Transform(x, roots_);
  for (size_t i = 0; i < x.size(); ++i) spectrum[i] = x[static_cast<size_t>(order_[i])];
}

void StoreSpectrum(const std::vector<std::complex<double>>& spectrum, int64_t lane, float* tile) {
  for (size_t i = 0; i < spectrum.size(); ++i) {
    float* point = tile + i * 2 * kTileChannels;
    point[lane] = static_cast<float>(spectrum[i].real());
    point[kTileChannels + lane] = static_cast<float>(spectrum[i].imag());
  }
}

}  // namespace hippodrome::cpu
