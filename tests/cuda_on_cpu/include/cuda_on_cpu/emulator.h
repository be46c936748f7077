// The emulator itself: how kernels start, in which order threads run, and what the primitives of
// kernels/cuda/base/mma.cuh mean.
#ifndef HIPPODROME_TESTS_CUDA_ON_CPU_INCLUDE_CUDA_ON_CPU_EMULATOR_H_
#define HIPPODROME_TESTS_CUDA_ON_CPU_INCLUDE_CUDA_ON_CPU_EMULATOR_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "cuda_on_cpu/language.h"
#include "cuda_on_cpu/runtime_api.h"

namespace cuda_on_cpu {

// ---- For tests ----------------------------------------------------------------------------------

// Which of the threads that can go on does so, and which block comes first. A correct kernel does
// not care.
enum class ThreadOrder { kForward, kReverse, kShuffled };
void SetThreadOrder(ThreadOrder order, uint64_t seed = 0);

// Kernels that ran since the last reset: those of a graph when it is launched, not when it is
// captured.
int64_t LaunchCount();
int64_t LaunchCount(const std::string& operation);
void ResetLaunchCounts();

// How many devices there are, each like the other: 1 by default.
void SetDeviceCount(int count);

// What the last kernel asked L2 for, in the order of addresses; neighbours are one piece.
struct Prefetched {
  const void* first;
  int64_t bytes;

  bool operator==(const Prefetched&) const = default;
};
std::vector<Prefetched> LastPrefetches();

// Device memory that is not freed, of all devices.
size_t DeviceBytes();

// ---- For kernels/cuda/base/launch.cuh -----------------------------------------------------------

struct KernelLaunch {
  std::string operation;
  dim3 grid;
  dim3 block;
  size_t shared_bytes;
  bool dependent;              // may start while the kernels before it run
  std::function<void()> body;  // one thread
};

// Runs the kernel now, or keeps it where the stream is being captured. Returns what CUDA returns
// for an impossible launch; throws std::logic_error where the kernel breaks the rules of CUDA.
cudaError_t Launch(cudaStream_t stream, KernelLaunch launch);

template <typename... P>
cudaError_t LaunchKernel(cudaStream_t stream, const char* operation, void (*kernel)(P...),
                         dim3 grid, dim3 block, size_t shared_bytes, bool dependent,
                         std::type_identity_t<P>... arguments) {
  static_assert((std::is_trivially_copyable_v<P> && ...), "a device gets the bytes alone");
  static_assert((sizeof(P) + ... + 0) <= 4096, "the parameters of a kernel are at most 4 KiB");
  return Launch(stream,
                {operation, grid, block, shared_bytes, dependent, [=] { kernel(arguments...); }});
}

// ---- For kernels --------------------------------------------------------------------------------

char* DynamicSharedMemory();

// Barrier of the block; the number of threads that came with a true predicate.
enum class BarrierKind : uint8_t { kPlain, kOr, kAnd, kCount };
int BlockBarrier(BarrierKind kind, bool predicate);
void WarpBarrier(unsigned mask);

enum class Shuffle : uint8_t { kIndex, kUp, kDown, kXor };
uint64_t ShuffleBits(Shuffle kind, unsigned mask, uint64_t bits, int argument, int width);
// One bit per lane of the mask.
unsigned Vote(unsigned mask, bool predicate);

// Orders this thread's accesses to memory, for ThreadSanitizer.
void MemoryFence();

void MmaBF16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]);
void MmaF16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]);
void MmaS8(int32_t (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]);
void LoadMatrices(uint32_t (&r)[4], const void* row, bool transposed);

// The bytes arrive as late as is allowed, in shuffled order also at once.
void CopyAsync16(void* shared, const void* from, bool valid);
void CommitCopies();
void WaitForCopies(int pending);

// Kernels run one after another, so nothing is waited for. A thread of a dependent launch that ends
// without having waited fails, as does one that touches device memory before, where accesses are
// counted.
void WaitForPrerequisites();

// Of whole pieces of 16 bytes within an allocation, or the launch throws std::logic_error.
void PrefetchToL2(const void* from, int64_t bytes);

}  // namespace cuda_on_cpu

#endif  // HIPPODROME_TESTS_CUDA_ON_CPU_INCLUDE_CUDA_ON_CPU_EMULATOR_H_
