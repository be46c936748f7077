#include "engine/initialization/state_spectrum.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>

#include "engine/initialization/hippo.h"

namespace hippodrome {
namespace {

std::vector<float> Floats(const std::vector<double>& values) {
  return {values.begin(), values.end()};
}

// Of half the modes, Im A < 0.
std::vector<double> LegSHalf(int64_t n) {
  const std::vector<double> all = LegSFrequencies(n);
  return {all.begin(), all.begin() + n / 2};
}

void Append(std::vector<float>& pairs, std::complex<double> z) {
  pairs.push_back(static_cast<float>(z.real()));
  pairs.push_back(static_cast<float>(z.imag()));
}

std::vector<std::complex<double>> ComplexNormals(int64_t count, RandomStream& stream) {
  std::vector<std::complex<double>> values(count);
  for (auto& value : values) {
    const double re = stream.Normal();
    value = {re * std::numbers::sqrt2 / 2, stream.Normal() * std::numbers::sqrt2 / 2};
  }
  return values;
}

// B of one row, normalised.
std::vector<std::complex<double>> InputRow(const std::vector<float>& a_imag, RandomStream& stream) {
  auto b = ComplexNormals(std::ssize(a_imag), stream);
  double power = 0;
  for (size_t n = 0; n < b.size(); ++n) {
    power += 2 * std::norm(b[n] / std::complex<double>(-0.5, a_imag[n]));
  }
  for (auto& value : b) value /= std::sqrt(power);
  return b;
}

}  // namespace

std::vector<float> ImaginaryParts(Measure measure, int64_t n) {
  if (measure == Measure::kDiagLegs) return Floats(LegSHalf(n));
  if (measure == Measure::kDiagInv) return Floats(InverseFrequencies(n / 2, n));
  return Floats(LinearFrequencies(n / 2));
}

std::vector<float> ImaginaryParts(EncoderScaling scaling, int64_t n) {
  if (scaling == EncoderScaling::kHippo) return Floats(LegSFrequencies(n));
  if (scaling == EncoderScaling::kInv) return Floats(InverseFrequencies(n, n));
  return Floats(LinearFrequencies(n));
}

NplrRow HippoLegsRow(int64_t n) {
  constexpr double kMostImaginaryB = 2;  // of the published code
  const NplrLegS legs = MakeNplrLegS(n);
  NplrRow row;
  for (size_t m = 0; m < legs.lambda.size(); ++m) {
    row.a_real.push_back(static_cast<float>(std::log(-legs.lambda[m].real())));
    row.a_imag.push_back(static_cast<float>(-legs.lambda[m].imag()));
    Append(row.b,
           {legs.b[m].real(), std::clamp(legs.b[m].imag(), -kMostImaginaryB, kMostImaginaryB)});
    Append(row.p, legs.p[m]);
  }
  return row;
}

std::vector<float> FoldedOutputs(const std::vector<float>& a_imag, int64_t s, int64_t channels,
                                 RandomStream stream) {
  const int64_t modes = std::ssize(a_imag);
  std::vector<std::vector<std::complex<double>>> b;
  for (int64_t row = 0; row < s; ++row) b.push_back(InputRow(a_imag, stream));
  std::vector<float> folded;
  folded.reserve(2 * channels * modes);
  for (int64_t channel = 0; channel < channels; ++channel) {
    const auto c = ComplexNormals(modes, stream);
    for (int64_t n = 0; n < modes; ++n) {
      Append(folded, c[n] * b[channel % s][n]);
    }
  }
  return folded;
}

}  // namespace hippodrome
