// FIR filters on a tile of 16 channels: causal convolutions and their gradients as direct sums, for
// sequences or kernels too short for a transform.
//
// A padded series is [tokens, kTileChannels] between kSeriesPadding rows of zeros on either side;
// pointers are to its token 0.
#ifndef HIPPODROME_KERNELS_CPU_CONV_DIRECT_CONV_H_
#define HIPPODROME_KERNELS_CPU_CONV_DIRECT_CONV_H_

#include <cstdint>

namespace hippodrome::cpu {

inline constexpr int64_t kSeriesPadding = 8;

// The taps of `kernel` [count, kTileChannels] are followed by zeros up to a multiple of 4. All
// errors are those of sums of as many products.

// y[t] = sum_{j <= t} kernel[j] x[t - j], j < count.  x: padded; y: [tokens, kTileChannels].
void ConvolveDirect(const float* kernel, int64_t count, const float* x, int64_t tokens, float* y);

// dx[t] = sum_j kernel[j] dy[t + j], j < count, t + j < tokens.  dy: padded; dx: [tokens,
// kTileChannels].
void CorrelateDirect(const float* kernel, int64_t count, const float* dy, int64_t tokens,
                     float* dx);

// sums[j] += sum_{t >= j} dy[t] x[t - j], j < min(count, tokens).  x, dy: padded; sums: [min(count,
// tokens), kTileChannels].
void AddCorrelation(const float* x, const float* dy, int64_t tokens, int64_t count, float* sums);

// y[t] = sum_j kernel[j] x[t - j], j < count, a multiple of 4, where x goes on for count - 1 rows
// before its row 0. x, y: [tokens, kTileChannels], with room for `tokens` rounded up to 8.
void Fir(const float* kernel, int64_t count, const float* x, int64_t tokens, float* y);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_CONV_DIRECT_CONV_H_
