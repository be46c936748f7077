// Discrete Fourier transforms of real values, in double precision, of any length.
#ifndef HIPPODROME_KERNELS_SSM_REAL_DFT_H_
#define HIPPODROME_KERNELS_SSM_REAL_DFT_H_

#include <complex>
#include <cstdint>
#include <span>
#include <vector>

namespace hippodrome {

// X[j] = sum_l x[l] exp(-2 pi i j l / n), j <= n / 2, of x followed by zeros. Time n log n for
// powers of two, else n^2.
std::vector<std::complex<double>> RealDft(std::span<const double> x, int64_t n);

// The first x.size() of the n real values that have the spectrum X[0 .. n / 2].
void InverseRealDft(std::span<const std::complex<double>> spectrum, int64_t n, std::span<double> x);

}  // namespace hippodrome

#endif  // HIPPODROME_KERNELS_SSM_REAL_DFT_H_
