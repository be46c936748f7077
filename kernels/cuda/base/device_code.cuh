// What every kernel of this folder builds on. Kernels are plain CUDA C++ and live in .cuh files:
// nvcc compiles them for devices, and a host compiler for the emulator of tests/cuda_on_cpu, which
// has its own <cuda_runtime.h> and <cuda_fp16.h>. So no others of the toolkit are used in a .cuh
// file, and what needs assembly is a function with two bodies, here or in mma.cuh.
#ifndef HIPPODROME_KERNELS_CUDA_BASE_DEVICE_CODE_CUH_
#define HIPPODROME_KERNELS_CUDA_BASE_DEVICE_CODE_CUH_

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/cuda/base/device.h"
#include "kernels/dtype.h"

namespace hippodrome::cuda {

inline constexpr int kWarp = 32;
inline constexpr unsigned kAllLanes = 0xffffffffu;

// The block's dynamic shared memory, aligned to 16 bytes.
__device__ inline char* SharedMemory() {
#ifdef __CUDACC__
  extern __shared__ __align__(16) char hippodrome_shared_memory[];
  return hippodrome_shared_memory;
#else
  return cuda_on_cpu::DynamicSharedMemory();
#endif
}

// An activation as a float, exactly.
__device__ inline float Widen(float x) { return x; }
__device__ inline float Widen(BF16 x) { return __uint_as_float(uint32_t{x.bits} << 16); }

// Rounds to nearest, ties to even.
__device__ inline BF16 RoundToBF16(float x) {
#ifdef __CUDACC__
  BF16 y;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
  return y;
#else
  return ToBF16(x);
#endif
}

// A float as an activation of type T: float or BF16.
template <typename T>
__device__ inline T FromFloat(float x);
template <>
__device__ inline float FromFloat<float>(float x) {
  return x;
}
template <>
__device__ inline BF16 FromFloat<BF16>(float x) {
  return RoundToBF16(x);
}

// 16 bytes of device memory, aligned, that are not read again soon; zeros if !valid, and then
// `from` is not read. Not before a WaitForPrerequisites() that it follows.
__device__ inline uint4 LoadOnce16(const void* from, bool valid) {
  uint4 x = make_uint4(0, 0, 0, 0);
#ifdef __CUDACC__
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.s32 p, %5, 0;\n"
      "@p ld.global.L1::no_allocate.L2::128B.v4.u32 {%0,%1,%2,%3}, [%4];\n"
      "}"
      : "+r"(x.x), "+r"(x.y), "+r"(x.z), "+r"(x.w)
      : "l"(__cvta_generic_to_global(from)), "r"(valid ? 1 : 0));
#else
  if (valid) cuda_on_cpu::MoveVector(&x, from, sizeof(x));
#endif
  return x;
}

// 2^x within two units in the last place; results below 2^-126 are 0.
__device__ inline float FastExp2(float x) {
#ifdef __CUDACC__
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return exp2f(x);
#endif
}

// 1 / x within a unit in the last place; 0 where that is below 2^-126.
__device__ inline float FastReciprocal(float x) {
#ifdef __CUDACC__
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return 1 / x;
#endif
}

// Asks for the cache line of an address in device memory ahead of its use.
__device__ inline void Prefetch(const void* address) {
#ifdef __CUDACC__
  asm volatile("prefetch.global.L1 [%0];" ::"l"(__cvta_generic_to_global(address)));
#else
  (void)address;
#endif
}

// x, but the compiler does not know it: what was computed from x is computed again instead of being
// kept in registers.
__device__ inline int Forget(int x) {
  asm volatile("" : "+r"(x));
  return x;
}

// ---- Programmatic dependent launch (CUDA Programming Guide, 4.5), of Grid::dependent ------------
//
// From sm_90 on such a kernel starts while those before it end. They may not yet have written what
// it reads, nor read what it writes.

// Lets the next kernel start when all blocks of this one have come here. That one waits for the end
// of this one, so a kernel may begin with it.
__device__ inline void LaunchDependents() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// Waits until the kernels before have ended and what they wrote can be read.
__device__ inline void WaitForPrerequisites() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#elif !defined(__CUDACC__)
  cuda_on_cpu::WaitForPrerequisites();
#endif
}

inline constexpr int64_t kMostPrefetched = 32 << 10;  // by one call

// Asks for device memory that the block will read, at most as much as all blocks of a device can
// get within some 3 us; `bytes` and the address are multiples of 16. Also before the wait: L2 sees
// what is written later. `asks` is true in few threads: a branch around the call would make ptxas
// take more instructions for the loops behind it.
__device__ inline void PrefetchToL2(bool asks, const void* from, int64_t bytes) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "setp.ne.s32 p, %2, 0;\n"
      "@p cp.async.bulk.prefetch.L2.global [%0], %1;\n"
      "}" ::"l"(__cvta_generic_to_global(from)),
      "r"(static_cast<uint32_t>(min(bytes, kMostPrefetched))), "r"(asks ? 1 : 0));
#elif !defined(__CUDACC__)
  if (asks) cuda_on_cpu::PrefetchToL2(from, min(bytes, kMostPrefetched));
#else
  (void)asks;
  (void)from;
  (void)bytes;
#endif
}

// Asks for this block's share, of at most 384 KB: as much as a multiprocessor can ask for in the
// time. A request takes a warp some 10 instructions, so all warps ask. REQUIRES: blocks of whole
// warps.
__device__ inline void PrefetchShare(const ReadAhead& ahead) {
  constexpr int kPieces = 12;
  if (ahead.bytes == 0) return;
  const int warps = static_cast<int>(blockDim.x) / kWarp;
  const int place =
      static_cast<int>(threadIdx.x) % kWarp * warps + static_cast<int>(threadIdx.x) / kWarp;
  const int begin = static_cast<int>(blockIdx.y * gridDim.x + blockIdx.x) * ahead.share;
  const int end = min(begin + ahead.share, ahead.bytes);
  const int piece = begin + place * static_cast<int>(kMostPrefetched);
  PrefetchToL2(place < kPieces && piece < end, ahead.first + piece, end - piece);
}

// What a kernel begins with that has nothing to do before the wait.
__device__ inline void BeginDependent() {
  LaunchDependents();
  WaitForPrerequisites();
}

// Over all lanes, in a fixed order; every lane gets the result.
__device__ inline float WarpSum(float x) {
  for (int mask = kWarp / 2; mask > 0; mask /= 2) x += __shfl_xor_sync(kAllLanes, x, mask);
  return x;
}
__device__ inline float WarpMax(float x) {
  for (int mask = kWarp / 2; mask > 0; mask /= 2) {
    x = fmaxf(x, __shfl_xor_sync(kAllLanes, x, mask));
  }
  return x;
}

// Complex arithmetic on (re, im).
__device__ inline float2 ComplexMultiply(float2 a, float2 b) {
  return make_float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}
// a b + c
__device__ inline float2 ComplexMultiplyAdd(float2 a, float2 b, float2 c) {
  return make_float2(fmaf(a.x, b.x, fmaf(-a.y, b.y, c.x)), fmaf(a.x, b.y, fmaf(a.y, b.x, c.y)));
}

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_BASE_DEVICE_CODE_CUH_
