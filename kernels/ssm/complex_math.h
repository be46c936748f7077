// Complex numbers in double, as discretisation and its gradients need them.
#ifndef HIPPODROME_KERNELS_SSM_COMPLEX_MATH_H_
#define HIPPODROME_KERNELS_SSM_COMPLEX_MATH_H_

#include <complex>

namespace hippodrome {

// The product as written: operator* also looks for infinities.
inline std::complex<double> Times(std::complex<double> a, std::complex<double> b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

// Below this the series is exact in double: the term after z^7 is below 1e-17.
inline constexpr double kSeriesRadius = 1e-2;

// The function of zero-order hold, phi(z) = (e^z - 1) / z, given e^z, without cancellation near 0.
inline std::complex<double> Phi1(std::complex<double> z, std::complex<double> exp_z) {
  if (std::norm(z) >= kSeriesRadius * kSeriesRadius) return (exp_z - 1.0) / z;
  std::complex<double> sum = 1.0;
  for (int k = 8; k >= 2; --k) sum = 1.0 + sum * z / static_cast<double>(k);
  return sum;
}

// phi'(z) = (e^z - phi(z)) / z, given e^z; relative error below 1e-11.
inline std::complex<double> Phi1Slope(std::complex<double> z, std::complex<double> exp_z) {
  if (std::norm(z) >= kSeriesRadius * kSeriesRadius) return (exp_z - Phi1(z, exp_z)) / z;
  // sum_k (k + 1) / (k + 2)! z^k = 1/2 + 2/3! z + 3/4! z^2 ...
  std::complex<double> sum = 0.0;
  double factorial = 40320;  // (k + 2)!, from k = 6
  for (int k = 6; k >= 0; --k) {
    sum = sum * z + (k + 1) / factorial;
    factorial /= k + 2;
  }
  return sum;
}

}  // namespace hippodrome

#endif  // HIPPODROME_KERNELS_SSM_COMPLEX_MATH_H_
