// The two state-space models of an H3 layer, in double precision, as equations.
#ifndef HIPPODROME_TESTS_REFERENCE_H3_SSM_H_
#define HIPPODROME_TESTS_REFERENCE_H3_SSM_H_

#include <complex>
#include <cstdint>
#include <vector>

#include "kernels/backend.h"

namespace hippodrome::reference {

using Complex = std::complex<double>;

// The diagonal SSM of one head after discretisation, M modes.
struct H3DiagonalSsm {
  std::vector<Complex> da;  // x_t = dA x_{t-1} + dB u_t
  std::vector<Complex> db;
  std::vector<Complex> c;  // y_t = 2 Re sum_n C_n x_t[n] + D u_t
  double d = 0;

  // Advances `x` [M] by one input and returns y.
  double Step(double u, std::vector<Complex>& x) const;
};

// Head `head` of the layer: H3 section 3, kernels of S4D (bilinear or zoh).
H3DiagonalSsm Discretize(const H3Parameters& p, int64_t head);

// The shift SSM of one channel.
struct H3ShiftSsm {
  std::vector<double> b;  // x_t[0] = B[0] u_t;  x_t[n] = x_{t-1}[n-1] + B[n] u_t
  std::vector<double> c;  // y_t = sum_n C[n] x_t[n] + D u_t
  double d = 0;

  double Step(double u, std::vector<double>& x) const;
};

H3ShiftSsm Shift(const H3Parameters& p, int64_t channel);

}  // namespace hippodrome::reference

#endif  // HIPPODROME_TESTS_REFERENCE_H3_SSM_H_
