// Starts kernels, and what tests may ask about them.
#include <algorithm>
#include <map>
#include <mutex>
#include <numeric>
#include <string>
#include <vector>

#include "tests/cuda_on_cpu/grid.h"
#include "tests/cuda_on_cpu/stream.h"
#include "tests/cuda_on_cpu/trace.h"

namespace cuda_on_cpu {
namespace {

constexpr size_t kMaxSharedBytes = size_t{227} << 10;

std::mutex mutex;  // one kernel at a time; guards what follows
ThreadOrder thread_order = ThreadOrder::kForward;
uint64_t random_state = 1;
std::map<std::string, int64_t> launch_counts;

// The blocks in the order in which they run.
std::vector<uint3> BlockOrder(dim3 grid) {
  std::vector<uint3> blocks;
  for (unsigned z = 0; z < grid.z; ++z) {
    for (unsigned y = 0; y < grid.y; ++y) {
      for (unsigned x = 0; x < grid.x; ++x) blocks.push_back({x, y, z});
    }
  }
  if (thread_order == ThreadOrder::kReverse) std::reverse(blocks.begin(), blocks.end());
  if (thread_order == ThreadOrder::kShuffled) {
    for (size_t i = blocks.size(); i > 1; --i) {
      std::swap(blocks[i - 1], blocks[RandomNumber() % i]);
    }
  }
  return blocks;
}

cudaError_t Check(const KernelLaunch& launch) {
  const dim3 grid = launch.grid;
  const dim3 block = launch.block;
  const uint64_t blocks = uint64_t{grid.x} * grid.y * grid.z;
  const uint64_t threads = uint64_t{block.x} * block.y * block.z;
  if (blocks == 0 || grid.x > 0x7fffffff || grid.y > 0xffff || grid.z > 0xffff || threads == 0 ||
      block.x > 1024 || block.y > 1024 || block.z > 64 || threads > kMaxThreads) {
    return cudaErrorInvalidConfiguration;
  }
  return launch.shared_bytes > kMaxSharedBytes ? cudaErrorInvalidValue : cudaSuccess;
}

}  // namespace

UNTRACED ThreadOrder CurrentOrder() { return thread_order; }

// xorshift64*.
UNTRACED uint64_t RandomNumber() {
  random_state ^= random_state >> 12;
  random_state ^= random_state << 25;
  random_state ^= random_state >> 27;
  return (random_state * 0x2545f4914f6cdd1du) >> 16;
}

void SetThreadOrder(ThreadOrder order, uint64_t seed) {
  const std::lock_guard lock(mutex);
  thread_order = order;
  random_state = seed * 0x9e3779b97f4a7c15u + 1;
}

int64_t LaunchCount() {
  const std::lock_guard lock(mutex);
  return std::accumulate(launch_counts.begin(), launch_counts.end(), int64_t{0},
                         [](int64_t sum, const auto& count) { return sum + count.second; });
}

int64_t LaunchCount(const std::string& operation) {
  const std::lock_guard lock(mutex);
  const auto count = launch_counts.find(operation);
  return count == launch_counts.end() ? 0 : count->second;
}

void ResetLaunchCounts() {
  const std::lock_guard lock(mutex);
  launch_counts.clear();
}

cudaError_t Launch(cudaStream_t stream, KernelLaunch launch) {
  const cudaError_t error = Check(launch);
  if (error != cudaSuccess) return Noted(error);
  if (!IsHere(stream)) return Noted(cudaErrorInvalidResourceHandle);
  return Submit(stream, [launch = std::move(launch)] {
    const std::lock_guard lock(mutex);
    ++launch_counts[launch.operation];
    ForgetPrefetches();
    TraceKernel(launch);
    RunBlocks(launch, BlockOrder(launch.grid));
    TraceKernelEnd();
    CheckPrefetches(launch.operation);
  });
}

}  // namespace cuda_on_cpu
