// What the sanitizers need to be told. Code that belongs to no thread of a kernel is UNTRACED:
// ThreadSanitizer would take the emulator's own bookkeeping for races.
#ifndef HIPPODROME_TESTS_CUDA_ON_CPU_SANITIZERS_H_
#define HIPPODROME_TESTS_CUDA_ON_CPU_SANITIZERS_H_

#include <cstddef>

#include "tests/cuda_on_cpu/include/cuda_on_cpu/language.h"

#define UNTRACED __attribute__((no_sanitize("thread")))

#ifdef CUDA_ON_CPU_ASAN
#include <sanitizer/asan_interface.h>
#endif
#ifdef CUDA_ON_CPU_TSAN
#include <sanitizer/tsan_interface.h>
extern "C" void __tsan_read_range(void* address, unsigned long bytes);
extern "C" void __tsan_write_range(void* address, unsigned long bytes);
#endif

namespace cuda_on_cpu {

// What happened before Release(token) happened before what follows Acquire(token).
UNTRACED inline void Release([[maybe_unused]] void* token) {
#ifdef CUDA_ON_CPU_TSAN
  __tsan_release(token);
#endif
}
UNTRACED inline void Acquire([[maybe_unused]] void* token) {
#ifdef CUDA_ON_CPU_TSAN
  __tsan_acquire(token);
#endif
}

// This thread reads or writes `bytes` at `address` here.
UNTRACED inline void TraceRead([[maybe_unused]] const void* address,
                               [[maybe_unused]] size_t bytes) {
#ifdef CUDA_ON_CPU_TSAN
  __tsan_read_range(const_cast<void*>(address), bytes);
#endif
}
UNTRACED inline void TraceWrite([[maybe_unused]] void* address, [[maybe_unused]] size_t bytes) {
#ifdef CUDA_ON_CPU_TSAN
  __tsan_write_range(address, bytes);
#endif
}

// Whether nobody may touch the memory, for AddressSanitizer.
inline void SetForbidden([[maybe_unused]] void* memory, [[maybe_unused]] size_t bytes,
                         [[maybe_unused]] bool forbidden) {
#ifdef CUDA_ON_CPU_ASAN
  forbidden ? __asan_poison_memory_region(memory, bytes)
            : __asan_unpoison_memory_region(memory, bytes);
#endif
}

}  // namespace cuda_on_cpu

#endif  // HIPPODROME_TESTS_CUDA_ON_CPU_SANITIZERS_H_
