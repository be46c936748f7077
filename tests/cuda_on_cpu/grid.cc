#include "tests/cuda_on_cpu/grid.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

namespace cuda_on_cpu {
namespace {

std::string Show(uint3 i) {
  return "(" + std::to_string(i.x) + ", " + std::to_string(i.y) + ", " + std::to_string(i.z) + ")";
}

std::string Message(const KernelLaunch& launch, const BlockFailure& failure) {
  const std::string place = launch.operation + ": block " + Show(failure.block);
  if (failure.what != nullptr) {
    return place + ": thread " + Show(failure.thread) + " " + failure.what;
  }
  return place + " cannot go on: " + std::to_string(failure.at_barrier) +
         " threads wait at a barrier of the block, " + std::to_string(failure.at_operation) +
         " at an operation of their warp, " + std::to_string(failure.ended) +
         " have ended; thread " + Show(failure.thread) + " waits";
}

void ThrowIfFailed(const KernelLaunch& launch, const BlockFailure& failure) {
  if (failure.failed) throw std::logic_error(Message(launch, failure));
}

#ifdef CUDA_ON_CPU_TSAN

// Blocks that ThreadSanitizer takes for concurrent: it sees no order between operating system
// threads that tell each other only in ways that it does not know when to run. Fewer where blocks
// are large, because its work for each barrier grows with the fibers that there are.
constexpr size_t kConcurrentBlocks = 4;
constexpr size_t kConcurrentThreads = 256;

size_t ConcurrentBlocks(dim3 block, size_t blocks) {
  const size_t threads = size_t{block.x} * block.y * block.z;
  return std::min(blocks, std::clamp(kConcurrentThreads / threads, size_t{2}, kConcurrentBlocks));
}

enum Turn : int { kWait, kGo, kStop };

UNTRACED Turn WaitForTurn(int& turn) {
  while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) == kWait) {
    syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, kWait, nullptr, nullptr, 0);
  }
  return static_cast<Turn>(__atomic_exchange_n(&turn, kWait, __ATOMIC_ACQUIRE));
}

UNTRACED void Give(int& turn, Turn value) {
  __atomic_store_n(&turn, value, __ATOMIC_RELEASE);
  syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

#endif

}  // namespace

#ifdef CUDA_ON_CPU_TSAN

void RunBlocks(const KernelLaunch& launch, const std::vector<uint3>& blocks) {
  // Kept, because fibers are dear.
  static std::array<std::unique_ptr<FiberPool>, kConcurrentBlocks> pools;
  const size_t count = ConcurrentBlocks(launch.block, blocks.size());
  int turns[kConcurrentBlocks] = {};
  std::vector<BlockFailure> failures(count);
  std::vector<std::thread> threads;
  for (size_t k = 0; k < count; ++k) {
    if (pools[k] == nullptr) pools[k] = std::make_unique<FiberPool>();
    threads.emplace_back([&, k] {
      for (size_t i = k; i < blocks.size(); i += count) {
        Turn turn = WaitForTurn(turns[k]);
        if (turn == kGo) failures[k] = Block(launch, blocks[i], *pools[k]).Run();
        if (failures[k].failed) turn = kStop;
        Give(turns[(k + 1) % count], turn);
      }
    });
  }
  // Not before: a new thread gets the stack of one that ended, and with it its past.
  Give(turns[0], kGo);
  for (std::thread& thread : threads) thread.join();
  for (const BlockFailure& failure : failures) ThrowIfFailed(launch, failure);
}

#else

void RunBlocks(const KernelLaunch& launch, const std::vector<uint3>& blocks) {
  static FiberPool* const pool = new FiberPool;
  for (const uint3 index : blocks) ThrowIfFailed(launch, Block(launch, index, *pool).Run());
}

#endif

}  // namespace cuda_on_cpu
