// What kernels ask of a device, counted while the emulator runs them: where the library and the
// kernels are compiled with CUDA_ON_CPU_COUNT and -fsanitize=thread, whose hooks the counters take
// in the sanitizer's place.
#ifndef HIPPODROME_TESTS_CUDA_ON_CPU_COUNTERS_H_
#define HIPPODROME_TESTS_CUDA_ON_CPU_COUNTERS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace cuda_on_cpu {

// A request is a load or a store of a warp: what its lanes do at one place in the code, the same
// time round since they last met. Its bytes are distinct: what all lanes read is useful once.
struct MemoryCounts {
  int64_t requests = 0;
  int64_t partial = 0;  // requests without some lane of the warp
  int64_t bytes = 0;
  // Of global memory sectors of 32 bytes. Of shared memory wavefronts: passes in which each of 32
  // banks gives 4 bytes; lanes come in halves of the warp for 8 bytes, in quarters for 16, unless
  // one pass serves all.
  int64_t units = 0;
  int64_t least_units = 0;  // that as many bytes need
  // Sectors that the block has read before and not written since.
  int64_t reloaded = 0;

  MemoryCounts& operator+=(const MemoryCounts& other);
};

enum class Access : uint8_t { kGlobalRead, kGlobalWrite, kSharedRead, kSharedWrite };
inline constexpr int kAccesses = 4;

struct AccessSite {
  const void* place;  // in the code
  Access access;
  MemoryCounts counts;
};

// Barriers of a block. One is needed where, without it, a thread could read or write 4 bytes before
// or after another thread writes them.
struct BarrierSite {
  const void* place;
  int64_t count = 0;
  int64_t needed = 0;
};

// Of all launches under one name.
struct KernelCounts {
  int64_t launches = 0;
  int64_t blocks = 0;
  int64_t threads = 0;
  MemoryCounts memory[kAccesses];
  // Of global memory, summed over launches. Distinct bytes are those that a launch reads before it
  // writes them, or writes.
  int64_t distinct_read = 0;
  int64_t distinct_written = 0;
  // Bytes between DRAM and a cache, see SetCacheBytes(), that keeps the sectors last used, and is
  // empty when a launch begins and written back when it ends.
  int64_t dram_read = 0;
  int64_t dram_written = 0;
  // Sectors that an L1 without end would ask L2 for: each once for each block that reads it, and
  // all that are written.
  int64_t l2_sectors = 0;
  // Instructions of warps.
  int64_t mma_bf16 = 0;
  int64_t mma_f16 = 0;
  int64_t mma_s8 = 0;
  int64_t shuffles = 0;
  int64_t votes = 0;
  int64_t warp_barriers = 0;
  int64_t atomics = 0;               // of lanes
  int64_t barriers = 0;              // of blocks
  std::vector<AccessSite> accesses;  // the most units first
  std::vector<BarrierSite> barrier_sites;

  const MemoryCounts& Of(Access access) const { return memory[static_cast<int>(access)]; }
};

// What a kernel could do without, the worst first: requests of which 10 % of the sectors are more
// than their bytes fill, bank conflicts that cost 15 % of the least wavefronts, sectors of which a
// block has read 15 % before, barriers that order nothing. Each as "file:line: what".
std::vector<std::string> Inefficiencies(const KernelCounts& counts);

// By the operation that Launch() was given, since the last reset. Any thread may ask; kernels of a
// process run one at a time.
std::map<std::string, KernelCounts> Counts();
void ResetCounts();

// Of the cache before DRAM, for kernels that begin afterwards; 50 MB by default, the L2 of an H100.
void SetCacheBytes(size_t bytes);

// "file:line" in the repository, of inlined functions the innermost first, " < " between: by
// addr2line and the program's debug information.
std::string SourceLines(const void* place);

}  // namespace cuda_on_cpu

#endif  // HIPPODROME_TESTS_CUDA_ON_CPU_COUNTERS_H_
