// The functions that -fsanitize=thread makes code call, as GCC and Clang name them: accesses are
// told to the counters, atomics are done, and the rest is nothing.
#include <cstring>

#include "tests/cuda_on_cpu/trace.h"

namespace cuda_on_cpu {
namespace {

// Their bits.
using U8 = uint8_t;
using U16 = uint16_t;
using U32 = uint32_t;
using U64 = uint64_t;

}  // namespace
}  // namespace cuda_on_cpu

using namespace cuda_on_cpu;  // NOLINT: the functions below are no namespace's

#define PLACE __builtin_return_address(0)

extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}

#define ACCESSES(bytes)                                                               \
  void __tsan_read##bytes(void* p) { TraceAccess(p, bytes, false, PLACE); }           \
  void __tsan_write##bytes(void* p) { TraceAccess(p, bytes, true, PLACE); }           \
  void __tsan_unaligned_read##bytes(void* p) { TraceAccess(p, bytes, false, PLACE); } \
  void __tsan_unaligned_write##bytes(void* p) { TraceAccess(p, bytes, true, PLACE); }
ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)
#undef ACCESSES

void __tsan_read_range(void* p, unsigned long bytes) { TraceAccess(p, bytes, false, PLACE); }
void __tsan_write_range(void* p, unsigned long bytes) { TraceAccess(p, bytes, true, PLACE); }

void* __tsan_memcpy(void* to, const void* from, unsigned long bytes) {
  return std::memcpy(to, from, bytes);
}
void* __tsan_memmove(void* to, const void* from, unsigned long bytes) {
  return std::memmove(to, from, bytes);
}
void* __tsan_memset(void* to, int value, unsigned long bytes) {
  return std::memset(to, value, bytes);
}

// Orders are those of the strongest kind: nothing here is measured.
#define ATOMICS(bits)                                                                              \
  U##bits __tsan_atomic##bits##_load(const volatile U##bits* p, int) {                             \
    return __atomic_load_n(p, __ATOMIC_SEQ_CST);                                                   \
  }                                                                                                \
  void __tsan_atomic##bits##_store(volatile U##bits* p, U##bits v, int) {                          \
    TraceAccess((const void*)p, bits / 8, true, PLACE);                                            \
    __atomic_store_n(p, v, __ATOMIC_SEQ_CST);                                                      \
  }                                                                                                \
  int __tsan_atomic##bits##_compare_exchange_strong(volatile U##bits* p, U##bits* c, U##bits v,    \
                                                    int, int) {                                    \
    TraceAtomic((const void*)p, bits / 8, PLACE);                                                  \
    return __atomic_compare_exchange_n(p, c, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);        \
  }                                                                                                \
  int __tsan_atomic##bits##_compare_exchange_weak(volatile U##bits* p, U##bits* c, U##bits v, int, \
                                                  int) {                                           \
    TraceAtomic((const void*)p, bits / 8, PLACE);                                                  \
    return __atomic_compare_exchange_n(p, c, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);        \
  }                                                                                                \
  U##bits __tsan_atomic##bits##_compare_exchange_val(volatile U##bits* p, U##bits c, U##bits v,    \
                                                     int, int) {                                   \
    TraceAtomic((const void*)p, bits / 8, PLACE);                                                  \
    __atomic_compare_exchange_n(p, &c, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);              \
    return c;                                                                                      \
  }
#define UPDATES(bits, name, function)                                         \
  U##bits __tsan_atomic##bits##_##name(volatile U##bits* p, U##bits v, int) { \
    TraceAtomic((const void*)p, bits / 8, PLACE);                             \
    return function(p, v, __ATOMIC_SEQ_CST);                                  \
  }
#define OF_BITS(bits)                          \
  ATOMICS(bits)                                \
  UPDATES(bits, exchange, __atomic_exchange_n) \
  UPDATES(bits, fetch_add, __atomic_fetch_add) \
  UPDATES(bits, fetch_sub, __atomic_fetch_sub) \
  UPDATES(bits, fetch_and, __atomic_fetch_and) \
  UPDATES(bits, fetch_or, __atomic_fetch_or)   \
  UPDATES(bits, fetch_xor, __atomic_fetch_xor) \
  UPDATES(bits, fetch_nand, __atomic_fetch_nand)
OF_BITS(8)
OF_BITS(16)
OF_BITS(32)
OF_BITS(64)

void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
void __tsan_atomic_signal_fence(int) { __atomic_signal_fence(__ATOMIC_SEQ_CST); }

}  // extern "C"
