// What the emulator tells the counters; nothing where they are not compiled.
#ifndef HIPPODROME_TESTS_CUDA_ON_CPU_TRACE_H_
#define HIPPODROME_TESTS_CUDA_ON_CPU_TRACE_H_

#include <cstddef>
#include <cstdint>

#include "tests/cuda_on_cpu/include/cuda_on_cpu/emulator.h"

namespace cuda_on_cpu {

enum class WarpInstruction : uint8_t { kMmaBF16, kMmaF16, kMmaS8, kShuffle, kVote, kBarrier };

#ifdef CUDA_ON_CPU_COUNT

void TraceKernel(const KernelLaunch& launch);
void TraceKernelEnd();
void TraceBlock(const char* shared, size_t shared_bytes, int threads);
// The threads of the block that runs are about to go on behind a barrier, or have ended: then
// `place` is null. `reduces`: as __syncthreads_or() and its like do.
void TraceBarrier(const void* place, bool reduces);
// All lanes of the warp have met.
void TraceMeeting(int warp);
// The lane that comes first tells.
void TraceInstruction(WarpInstruction instruction);
void TraceAccess(const void* address, size_t bytes, bool write, const void* place);
// Of a lane; it goes to L2, as what is written does.
void TraceAtomic(const void* address, size_t bytes, const void* place);

// Device memory: calls visit(begin, bytes) for each allocation, in the order of addresses.
void VisitAllocations(void (*visit)(uintptr_t begin, size_t bytes));

#else

inline void TraceKernel(const KernelLaunch&) {}
inline void TraceKernelEnd() {}
inline void TraceBlock(const char*, size_t, int) {}
inline void TraceBarrier(const void*, bool) {}
inline void TraceMeeting(int) {}
inline void TraceInstruction(WarpInstruction) {}
inline void TraceAccess(const void*, size_t, bool, const void*) {}

#endif

}  // namespace cuda_on_cpu

#endif  // HIPPODROME_TESTS_CUDA_ON_CPU_TRACE_H_
