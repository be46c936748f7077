// Qualifiers, vector types and built-in variables of CUDA C++.
#ifndef HIPPODROME_TESTS_CUDA_ON_CPU_INCLUDE_CUDA_ON_CPU_LANGUAGE_H_
#define HIPPODROME_TESTS_CUDA_ON_CPU_INCLUDE_CUDA_ON_CPU_LANGUAGE_H_

#include <cstddef>

#ifndef __has_feature
#define __has_feature(feature) 0
#endif
#if (defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)) && !defined(CUDA_ON_CPU_COUNT)
#define CUDA_ON_CPU_TSAN 1
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define CUDA_ON_CPU_ASAN 1
#endif

#define __global__
#define __device__
#define __host__
#define __constant__
#define __grid_constant__
// One block runs at a time, so one copy is enough. For ThreadSanitizer each of the blocks that are
// not ordered runs on an operating system thread with a copy of its own; AddressSanitizer guards
// plain variables only.
#ifdef CUDA_ON_CPU_TSAN
#define __shared__ static thread_local
#else
#define __shared__ static
#endif
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1)  // NOLINT: as in the toolkit
      : x(x), y(y), z(z) {}
  unsigned x, y, z;
};

namespace cuda_on_cpu {

// One access, where compilers would move the elements of a vector.
#ifdef CUDA_ON_CPU_COUNT
void MoveVector(void* to, const void* from, size_t bytes);
#else
inline void MoveVector(void* to, const void* from, size_t bytes) {
  __builtin_memcpy(to, from, bytes);
}
#endif

}  // namespace cuda_on_cpu

#ifdef CUDA_ON_CPU_COUNT
#define CUDA_ON_CPU_COPIES(V)                                                  \
  V() = default;                                                               \
  V(const V& v) { cuda_on_cpu::MoveVector(this, &v, sizeof(v)); } /* NOLINT */ \
  V& operator=(const V& v) {                                                   \
    if (this != &v) cuda_on_cpu::MoveVector(this, &v, sizeof(v));              \
    return *this;                                                              \
  }
#define CUDA_ON_CPU_VECTORS(Name, Element)                                                    \
  struct alignas(2 * sizeof(Element)) Name##2 {                                               \
    Element x, y;                                                                             \
    CUDA_ON_CPU_COPIES(Name##2)                                                               \
    constexpr Name##2(Element x, Element y) : x(x), y(y) {}                                   \
  };                                                                                          \
  struct alignas(sizeof(Element) < 8 ? 4 * sizeof(Element) : 16) Name##4 {                    \
    Element x, y, z, w;                                                                       \
    CUDA_ON_CPU_COPIES(Name##4)                                                               \
    constexpr Name##4(Element x, Element y, Element z, Element w) : x(x), y(y), z(z), w(w) {} \
  };
#else
#define CUDA_ON_CPU_VECTORS(Name, Element)                       \
  struct alignas(2 * sizeof(Element)) Name##2 { Element x, y; }; \
  struct alignas(sizeof(Element) < 8 ? 4 * sizeof(Element) : 16) Name##4 { Element x, y, z, w; };
#endif
#define CUDA_ON_CPU_MAKERS(Name, Element)                                        \
  CUDA_ON_CPU_VECTORS(Name, Element)                                             \
  constexpr Name##2 make_##Name##2(Element x, Element y) { return {x, y}; }      \
  constexpr Name##4 make_##Name##4(Element x, Element y, Element z, Element w) { \
    return {x, y, z, w};                                                         \
  }
CUDA_ON_CPU_MAKERS(float, float)
CUDA_ON_CPU_MAKERS(double, double)
CUDA_ON_CPU_MAKERS(int, int)
CUDA_ON_CPU_MAKERS(uint, unsigned)
CUDA_ON_CPU_MAKERS(short, short)
CUDA_ON_CPU_MAKERS(ushort, unsigned short)
CUDA_ON_CPU_MAKERS(longlong, long long)
CUDA_ON_CPU_MAKERS(ulonglong, unsigned long long)
#undef CUDA_ON_CPU_MAKERS
#undef CUDA_ON_CPU_VECTORS

// Of the thread that runs.
extern uint3 threadIdx;
extern uint3 blockIdx;
extern dim3 blockDim;
extern dim3 gridDim;
inline constexpr int warpSize = 32;

#endif  // HIPPODROME_TESTS_CUDA_ON_CPU_INCLUDE_CUDA_ON_CPU_LANGUAGE_H_
