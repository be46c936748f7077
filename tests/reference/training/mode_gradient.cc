#include "tests/reference/training/mode_gradient.h"

#include <cmath>

namespace hippodrome::reference {
namespace {

using Complex = std::complex<double>;

// phi(z) = (exp(z) - 1) / z = sum_k z^k / (k+1)! and phi'(z), by their series: each term follows
// from the one before, and 60 reach the last bit for |z| < 8.
Complex Phi(Complex z) {
  if (std::abs(z) > 4) return (std::exp(z) - 1.0) / z;
  Complex term = 1;
  Complex sum = 0;
  for (int k = 0; k < 60; ++k) {
    sum += term;
    term *= z / static_cast<double>(k + 2);
  }
  return sum;
}

Complex PhiSlope(Complex z) {
  if (std::abs(z) > 4) return (std::exp(z) - Phi(z)) / z;
  Complex term = 0.5;  // z^(k-1) / (k+1)!, times k in the sum
  Complex sum = 0;
  for (int k = 1; k < 60; ++k) {
    sum += term * static_cast<double>(k);
    term *= z / static_cast<double>(k + 2);
  }
  return sum;
}

}  // namespace

ModeGradient::ModeGradient(const Mode& mode, Discretization rule, double scale,
                           const std::vector<double>& dk)
    : mode_(mode), scale_(scale) {
  const Complex z = mode.dt * mode.a;
  Complex da;
  if (rule == Discretization::kBilinear) {
    w_ = 1.0 / (1.0 - z / 2.0);
    w_by_z_ = w_ * w_ / 2.0;
    da = (1.0 + z / 2.0) * w_;
    da_by_z_ = w_ / 2.0 + (1.0 + z / 2.0) * w_by_z_;
  } else {
    w_ = Phi(z);
    w_by_z_ = PhiSlope(z);
    da = std::exp(z);
    da_by_z_ = std::exp(z);
  }
  db_ = mode.b * mode.dt * w_;
  Complex power = 1;  // dA^l
  Complex slope = 0;  // l dA^(l-1)
  for (const double g : dk) {
    sum_ += g * power;
    slope_sum_ += g * slope;
    slope = slope * da + power;
    power *= da;
  }
}

double ModeGradient::Along(const ModeVariation& change) const {
  const Complex dz = change.dt * mode_.a + mode_.dt * change.a;
  const Complex dda = da_by_z_ * dz;
  const Complex ddb =
      change.b * mode_.dt * w_ + mode_.b * change.dt * w_ + mode_.b * mode_.dt * w_by_z_ * dz;
  return scale_ *
         (change.c * db_ * sum_ + mode_.c * ddb * sum_ + mode_.c * db_ * slope_sum_ * dda).real();
}

}  // namespace hippodrome::reference
