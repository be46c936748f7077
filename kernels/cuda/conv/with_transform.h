// From a number of tokens, known at run time, to the transform that is compiled for it.
#ifndef HIPPODROME_KERNELS_CUDA_CONV_WITH_TRANSFORM_H_
#define HIPPODROME_KERNELS_CUDA_CONV_WITH_TRANSFORM_H_

#include <cstdint>
#include <type_traits>

#include "kernels/cuda/conv/fft_tables.h"

namespace hippodrome::cuda {

// use(std::integral_constant<int, points>()) with the shortest transform within a block, of
// kShortest points at least, that holds `tokens`. REQUIRES: tokens <= kLongestBlockTransform, or
// the longest is taken.
template <int kShortest, typename Use>
auto WithTransform(int64_t tokens, const Use& use) {
  if constexpr (kShortest < kLongestBlockTransform) {
    if (tokens > kShortest) return WithTransform<2 * kShortest>(tokens, use);
  }
  return use(std::integral_constant<int, kShortest>());
}

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_CONV_WITH_TRANSFORM_H_
