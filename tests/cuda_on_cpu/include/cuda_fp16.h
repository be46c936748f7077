// Stands for the toolkit's <cuda_fp16.h>: what kernels/cuda uses of it. Results are rounded to
// nearest, ties to even.
#ifndef HIPPODROME_TESTS_CUDA_ON_CPU_INCLUDE_CUDA_FP16_H_
#define HIPPODROME_TESTS_CUDA_ON_CPU_INCLUDE_CUDA_FP16_H_

#include <bit>
#include <cstdint>

#include "cuda_on_cpu/device_functions.h"
#include "kernels/dtype.h"

// One word, so that the counters see it as one.
struct __half2 {
  uint32_t bits;
};

inline float __low2float(__half2 pair) {
  return hippodrome::HalfToFloat(static_cast<uint16_t>(pair.bits));
}
inline float __high2float(__half2 pair) {
  return hippodrome::HalfToFloat(static_cast<uint16_t>(pair.bits >> 16));
}
inline float2 __half22float2(__half2 pair) {
  return make_float2(__low2float(pair), __high2float(pair));
}

namespace cuda_on_cpu {

inline __half2 RoundToHalves(double low, double high) {
  const auto half = [](double x) -> uint32_t {
    return std::bit_cast<uint16_t>(static_cast<_Float16>(x));
  };
  return {half(low) | half(high) << 16};
}

}  // namespace cuda_on_cpu

inline __half2 __floats2half2_rn(float low, float high) {
  return cuda_on_cpu::RoundToHalves(low, high);
}

inline __half2 __lows2half2(__half2 a, __half2 b) { return {(a.bits & 0xffffu) | b.bits << 16}; }
inline __half2 __highs2half2(__half2 a, __half2 b) {
  return {a.bits >> 16 | (b.bits & 0xffff0000u)};
}
inline __half2 __low2half2(__half2 a) { return __lows2half2(a, a); }
inline __half2 __high2half2(__half2 a) { return __highs2half2(a, a); }

inline __half2 __hneg2(__half2 a) { return {a.bits ^ 0x80008000u}; }
// A product of two such numbers is exact in double, and its sum with a third one nearly always.
inline __half2 __hfma2(__half2 a, __half2 b, __half2 c) {
  const auto fma = [](double x, double y, double z) { return x * y + z; };
  return cuda_on_cpu::RoundToHalves(fma(__low2float(a), __low2float(b), __low2float(c)),
                                    fma(__high2float(a), __high2float(b), __high2float(c)));
}
inline __half2 __hmul2(__half2 a, __half2 b) { return __hfma2(a, b, {0x80008000u}); }
inline __half2 __hadd2(__half2 a, __half2 b) {
  return __hfma2(a, __floats2half2_rn(1.0f, 1.0f), b);
}
inline __half2 __hsub2(__half2 a, __half2 b) { return __hadd2(a, __hneg2(b)); }

#endif  // HIPPODROME_TESTS_CUDA_ON_CPU_INCLUDE_CUDA_FP16_H_
