// Barriers, shuffles, votes, atomics and cached accesses.
#ifndef HIPPODROME_TESTS_CUDA_ON_CPU_INCLUDE_CUDA_ON_CPU_DEVICE_FUNCTIONS_H_
#define HIPPODROME_TESTS_CUDA_ON_CPU_INCLUDE_CUDA_ON_CPU_DEVICE_FUNCTIONS_H_

#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "cuda_on_cpu/emulator.h"

// ---- Barriers -----------------------------------------------------------------------------------

inline void __syncthreads() { cuda_on_cpu::BlockBarrier(cuda_on_cpu::BarrierKind::kPlain, false); }
inline int __syncthreads_or(int predicate) {
  return cuda_on_cpu::BlockBarrier(cuda_on_cpu::BarrierKind::kOr, predicate != 0) > 0 ? 1 : 0;
}
inline int __syncthreads_and(int predicate) {
  return cuda_on_cpu::BlockBarrier(cuda_on_cpu::BarrierKind::kAnd, predicate == 0) == 0 ? 1 : 0;
}
inline int __syncthreads_count(int predicate) {
  return cuda_on_cpu::BlockBarrier(cuda_on_cpu::BarrierKind::kCount, predicate != 0);
}
inline void __syncwarp(unsigned mask = 0xffffffffu) { cuda_on_cpu::WarpBarrier(mask); }
inline void __threadfence() { cuda_on_cpu::MemoryFence(); }
inline void __threadfence_block() { cuda_on_cpu::MemoryFence(); }

// ---- Warps --------------------------------------------------------------------------------------

namespace cuda_on_cpu {

template <typename T>
T ShuffleValue(Shuffle kind, unsigned mask, T value, int argument, int width) {
  static_assert(std::is_arithmetic_v<T> && sizeof(T) <= 8, "shuffles take numbers");
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = ShuffleBits(kind, mask, bits, argument, width);
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

}  // namespace cuda_on_cpu

template <typename T>
T __shfl_sync(unsigned mask, T value, int lane, int width = 32) {
  return cuda_on_cpu::ShuffleValue(cuda_on_cpu::Shuffle::kIndex, mask, value, lane, width);
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  return cuda_on_cpu::ShuffleValue(cuda_on_cpu::Shuffle::kUp, mask, value, static_cast<int>(delta),
                                   width);
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  return cuda_on_cpu::ShuffleValue(cuda_on_cpu::Shuffle::kDown, mask, value,
                                   static_cast<int>(delta), width);
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32) {
  return cuda_on_cpu::ShuffleValue(cuda_on_cpu::Shuffle::kXor, mask, value, lanes, width);
}
inline unsigned __ballot_sync(unsigned mask, int predicate) {
  return cuda_on_cpu::Vote(mask, predicate != 0);
}
inline int __any_sync(unsigned mask, int predicate) {
  return cuda_on_cpu::Vote(mask, predicate != 0) != 0 ? 1 : 0;
}
inline int __all_sync(unsigned mask, int predicate) {
  return cuda_on_cpu::Vote(mask, predicate != 0) == mask ? 1 : 0;
}

// ---- Atomics: relaxed, as on a device -----------------------------------------------------------

namespace cuda_on_cpu {

// *address = change(*address); the old value.
template <typename T, typename Change>
T AtomicUpdate(T* address, const Change& change) {
  T old;
  __atomic_load(address, &old, __ATOMIC_RELAXED);
  T updated = change(old);
  while (!__atomic_compare_exchange(address, &old, &updated, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED)) {
    updated = change(old);
  }
  return old;
}

}  // namespace cuda_on_cpu

template <typename T>
T atomicAdd(T* address, std::type_identity_t<T> value) {
  return cuda_on_cpu::AtomicUpdate(address, [=](T old) { return static_cast<T>(old + value); });
}
template <typename T>
T atomicMax(T* address, std::type_identity_t<T> value) {
  static_assert(std::is_integral_v<T>);
  return cuda_on_cpu::AtomicUpdate(address, [=](T old) { return old < value ? value : old; });
}
template <typename T>
T atomicMin(T* address, std::type_identity_t<T> value) {
  static_assert(std::is_integral_v<T>);
  return cuda_on_cpu::AtomicUpdate(address, [=](T old) { return value < old ? value : old; });
}
template <typename T>
T atomicExch(T* address, std::type_identity_t<T> value) {
  return cuda_on_cpu::AtomicUpdate(address, [=](T) { return value; });
}
template <typename T>
T atomicCAS(T* address, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
  static_assert(std::is_integral_v<T>);
  return cuda_on_cpu::AtomicUpdate(address, [=](T old) { return old == expected ? value : old; });
}

// ---- Cached accesses ----------------------------------------------------------------------------

template <typename T>
T __ldg(const T* address) {
  return *address;
}
template <typename T>
T __ldcs(const T* address) {
  return *address;
}
template <typename T>
T __ldcg(const T* address) {
  return *address;
}
template <typename T>
void __stcs(T* address, std::type_identity_t<T> value) {
  *address = value;
}
template <typename T>
void __stcg(T* address, std::type_identity_t<T> value) {
  *address = value;
}

#endif  // HIPPODROME_TESTS_CUDA_ON_CPU_INCLUDE_CUDA_ON_CPU_DEVICE_FUNCTIONS_H_
