// The kernel of one channel whose C is stored as C~ = C (I - dA^n), by its generating function.
#ifndef HIPPODROME_KERNELS_SSM_NPLR_CIRCULAR_H_
#define HIPPODROME_KERNELS_SSM_NPLR_CIRCULAR_H_

#include <cstdint>
#include <span>

#include "kernels/ssm/nplr_modes.h"

namespace hippodrome {

// The first kernel.size() <= n points of K, where x.c is C~. At the n-th roots of unity w,
//   sum_{l<n} K[l] w^l = C~ (I - w dA)^-1 dB = C~ ((1 - w) I - (1 + w) dt/2 A)^-1 dt B
// which the Woodbury identity reduces to sums over modes (S4, section 3).
void NplrCircularKernel(const NplrNumbers& x, int64_t n, std::span<double> kernel);

// The gradients of x from dk, d loss / d K of the first dk.size() <= n points.
NplrNumbers NplrCircularGradient(const NplrNumbers& x, int64_t n, std::span<const double> dk);

}  // namespace hippodrome

#endif  // HIPPODROME_KERNELS_SSM_NPLR_CIRCULAR_H_
