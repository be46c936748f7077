// Stands for the toolkit's <cuda_fp16.h>: what kernels/cuda uses of it.
#ifndef HIPPODROME_TESTS_CUDA_ON_CPU_INCLUDE_CUDA_FP16_H_
#define HIPPODROME_TESTS_CUDA_ON_CPU_INCLUDE_CUDA_FP16_H_

#include <bit>
#include <cstdint>

#include "cuda_on_cpu/device_functions.h"
#include "kernels/dtype.h"

struct alignas(4) __half2 {
  uint16_t x, y;
};

inline float2 __half22float2(__half2 pair) {
  return make_float2(hippodrome::HalfToFloat(pair.x), hippodrome::HalfToFloat(pair.y));
}

inline __half2 __floats2half2_rn(float x, float y) {
  const auto round = [](float value) {
    return std::bit_cast<uint16_t>(static_cast<_Float16>(value));
  };
  return {round(x), round(y)};
}

#endif  // HIPPODROME_TESTS_CUDA_ON_CPU_INCLUDE_CUDA_FP16_H_
