// Sums over the modes of a diagonal SSM, and what a gradient needs of them, in double precision.
#ifndef HIPPODROME_KERNELS_SSM_MODE_SUM_H_
#define HIPPODROME_KERNELS_SSM_MODE_SUM_H_

#include <complex>
#include <span>

namespace hippodrome {

// K[l] = Re sum_n w_n a_n^l for l < kernel.size(). A prefix is the same whatever follows it.
// Relative error to sum_n |w_n|, for |a_n| <= 1: below 1e-15 kernel.size().
void SumModes(std::span<const std::complex<double>> a, std::span<const std::complex<double>> w,
              std::span<double> kernel);

// m0_n = sum_l g_l a_n^l and m1_n = sum_l l g_l a_n^l, over l < g.size(): for a loss of the K of
// SumModes() with g = d loss / d K,
//   d loss / d Re w_n + i d loss / d Im w_n = conj(m0_n), and conj(w_n m1_n) the same of log a_n.
void ModeMoments(std::span<const std::complex<double>> a, std::span<const double> g,
                 std::span<std::complex<double>> m0, std::span<std::complex<double>> m1);

}  // namespace hippodrome

#endif  // HIPPODROME_KERNELS_SSM_MODE_SUM_H_
