// How the kernel of one mode of a diagonal SSM varies with its parameters.
#ifndef HIPPODROME_TESTS_REFERENCE_TRAINING_MODE_GRADIENT_H_
#define HIPPODROME_TESTS_REFERENCE_TRAINING_MODE_GRADIENT_H_

#include <complex>
#include <vector>

#include "kernels/backend.h"

namespace hippodrome::reference {

// The numbers that give K[l] = scale Re C dB dA^l: as formulas at Backend::PrepareH3.
struct Mode {
  std::complex<double> a, b, c;
  double dt = 0;
};

// Small changes of them.
struct ModeVariation {
  std::complex<double> a, b, c;
  double dt = 0;
};

// L = sum_l dK[l] K[l] of one mode, as a function of its numbers.
class ModeGradient {
 public:
  ModeGradient(const Mode& mode, Discretization rule, double scale, const std::vector<double>& dk);

  // The change of L:
  //   sum_l dK[l] scale Re (dc dB dA^l + C ddB dA^l + C dB l dA^(l-1) ddA)
  double Along(const ModeVariation& change) const;

 private:
  Mode mode_;
  double scale_;
  std::complex<double> da_by_z_;          // d dA / d z, z = dt A
  std::complex<double> db_;               // dB = B dt w(z)
  std::complex<double> w_, w_by_z_;       // w(z) = 1 / (1 - z/2) or (exp(z) - 1) / z
  std::complex<double> sum_, slope_sum_;  // sum_l dK[l] dA^l, sum_l dK[l] l dA^(l-1)
};

}  // namespace hippodrome::reference

#endif  // HIPPODROME_TESTS_REFERENCE_TRAINING_MODE_GRADIENT_H_
