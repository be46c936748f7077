// Which of the two methods of the long convolution is faster.
#ifndef HIPPODROME_KERNELS_CUDA_CONV_LONG_CONV_METHOD_H_
#define HIPPODROME_KERNELS_CUDA_CONV_LONG_CONV_METHOD_H_

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/dtype.h"

namespace hippodrome::cuda {

enum class LongConvMethod : uint8_t { kToeplitz, kFft };

// Picoseconds for a point (one channel at one time) of 64 sequences of 1,024 channels on an H100,
// as counts predict them without one (docs/gpu-model.md). The Toeplitz matrix: half of the products
// of tiles of 128 times, and what a tile costs beside.
inline double ToeplitzPicoseconds(int64_t tokens, DType activations) {
  const double terms = activations == DType::kBF16 ? 1 : 3;
  const int64_t tiles = (tokens + 127) / 128;
  const double times = 128 * static_cast<double>(tiles);
  return terms * (3.2 + 0.0061 * times) * times / static_cast<double>(tokens);
}
// 8.5 log2 L + 11 operations for each of the L points of a transform that holds the tokens.
inline double FftPicoseconds(int64_t tokens) {
  const double points =
      static_cast<double>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(tokens, 512))));
  return points / static_cast<double>(tokens) * (8.5 * std::log2(points) + 11) / 16;
}

inline LongConvMethod FasterLongConv(int64_t tokens, DType activations) {
  return FftPicoseconds(tokens) < ToeplitzPicoseconds(tokens, activations)
             ? LongConvMethod::kFft
             : LongConvMethod::kToeplitz;
}

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_CONV_LONG_CONV_METHOD_H_
