// A causal convolution as the product with the Toeplitz matrix of its kernel.
#ifndef HIPPODROME_KERNELS_CPU_CONV_TOEPLITZ_H_
#define HIPPODROME_KERNELS_CPU_CONV_TOEPLITZ_H_

#include "kernels/cpu/conv/tile.h"
#include "kernels/cpu/gemm/small_gemm.h"

namespace hippodrome::cpu {

// Zeros that follow a kernel's taps.
inline constexpr int64_t kZeroTaps = kSmallGemmRows - 1;

// Channels that are multiplied together.
inline constexpr int64_t kToeplitzChannels = 64;

// y[t] = sum_{l <= t} K[l] u[t - l] for u.width <= kToeplitzChannels.
// taps: K in reversed time, taps[-l] = K[l] for l < tokens, and taps[1, kZeroTaps] = 0.
// Error <= g(t + 1) |K| * |u|. REQUIRES: u and y are of one size and do not overlap.
void ToeplitzProduct(const float* taps, const TimeSeries& u, const TimeSeries& y);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_CONV_TOEPLITZ_H_
