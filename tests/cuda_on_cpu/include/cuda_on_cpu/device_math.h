// Mathematical functions of device code that a C++ library lacks.
#ifndef HIPPODROME_TESTS_CUDA_ON_CPU_INCLUDE_CUDA_ON_CPU_DEVICE_MATH_H_
#define HIPPODROME_TESTS_CUDA_ON_CPU_INCLUDE_CUDA_ON_CPU_DEVICE_MATH_H_

#include <math.h>

#include <bit>
#include <cstdint>
#include <numbers>
#include <type_traits>

inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
inline long long __double_as_longlong(double x) { return std::bit_cast<long long>(x); }
inline double __longlong_as_double(long long x) { return std::bit_cast<double>(x); }

// Of one type, or the mixtures that device code allows without a loss.
template <typename A, typename B>
  requires(std::is_arithmetic_v<A> && std::is_arithmetic_v<B>)
constexpr std::common_type_t<A, B> min(A a, B b) {
  using T = std::common_type_t<A, B>;
  if constexpr (std::is_floating_point_v<T>)
    return std::is_same_v<T, float> ? fminf(a, b) : fmin(a, b);
  else
    return static_cast<T>(b) < static_cast<T>(a) ? static_cast<T>(b) : static_cast<T>(a);
}
template <typename A, typename B>
  requires(std::is_arithmetic_v<A> && std::is_arithmetic_v<B>)
constexpr std::common_type_t<A, B> max(A a, B b) {
  using T = std::common_type_t<A, B>;
  if constexpr (std::is_floating_point_v<T>)
    return std::is_same_v<T, float> ? fmaxf(a, b) : fmax(a, b);
  else
    return static_cast<T>(a) < static_cast<T>(b) ? static_cast<T>(b) : static_cast<T>(a);
}

inline float rsqrtf(float x) { return static_cast<float>(1 / sqrt(static_cast<double>(x))); }
inline double rsqrt(double x) { return 1 / sqrt(x); }
inline float __frcp_rn(float x) { return 1 / x; }
inline float __fsqrt_rn(float x) { return sqrtf(x); }
inline float __fdividef(float x, float y) { return x / y; }
inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
inline float __fmul_rn(float x, float y) { return x * y; }
inline float __fadd_rn(float x, float y) { return x + y; }
inline float __fsub_rn(float x, float y) { return x - y; }
inline float __fdiv_rn(float x, float y) { return x / y; }
inline float __saturatef(float x) { return fminf(fmaxf(x, 0.0f), 1.0f); }
inline int __float2int_rn(float x) { return static_cast<int>(rintf(x)); }

inline void sincospi(double x, double* sine, double* cosine) {
  const double angle = std::numbers::pi * fmod(x, 2.0);
  *sine = sin(angle);
  *cosine = cos(angle);
}
inline void sincospif(float x, float* sine, float* cosine) {
  double s, c;
  sincospi(x, &s, &c);
  *sine = static_cast<float>(s);
  *cosine = static_cast<float>(c);
}
inline double sinpi(double x) { return sin(std::numbers::pi * fmod(x, 2.0)); }
inline double cospi(double x) { return cos(std::numbers::pi * fmod(x, 2.0)); }
inline float sinpif(float x) { return static_cast<float>(sinpi(x)); }
inline float cospif(float x) { return static_cast<float>(cospi(x)); }

// The C library declares these names and does not define them.
#define __expf(x) expf(x)
#define __exp10f(x) exp10f(x)
#define __logf(x) logf(x)
#define __log2f(x) log2f(x)
#define __sinf(x) sinf(x)
#define __cosf(x) cosf(x)
#define __powf(x, y) powf(x, y)
#define __sincosf(x, sine, cosine) sincosf(x, sine, cosine)

inline int __popc(unsigned x) { return std::popcount(x); }
inline int __popcll(unsigned long long x) { return std::popcount(x); }
inline int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
inline int __clzll(long long x) { return std::countl_zero(static_cast<unsigned long long>(x)); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __brev(unsigned x) {
  x = (x & 0x55555555u) << 1 | (x >> 1 & 0x55555555u);
  x = (x & 0x33333333u) << 2 | (x >> 2 & 0x33333333u);
  x = (x & 0x0f0f0f0fu) << 4 | (x >> 4 & 0x0f0f0f0fu);
  return __builtin_bswap32(x);
}
// Of the bytes of x, 0 to 3, and y, 4 to 7, those that the lowest hexadecimal digits name.
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned digits) {
  const uint64_t bytes = uint64_t{y} << 32 | x;
  unsigned chosen = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned byte = digits >> 4 * i & 7;
    chosen |= static_cast<unsigned>(bytes >> 8 * byte & 0xff) << 8 * i;
  }
  return chosen;
}
inline unsigned __umulhi(unsigned x, unsigned y) {
  return static_cast<unsigned>((uint64_t{x} * y) >> 32);
}
inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  return static_cast<unsigned long long>((static_cast<unsigned __int128>(x) * y) >> 64);
}

#endif  // HIPPODROME_TESTS_CUDA_ON_CPU_INCLUDE_CUDA_ON_CPU_DEVICE_MATH_H_
