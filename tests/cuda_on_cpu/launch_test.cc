#include <gtest/gtest.h>

#include <set>
#include <stdexcept>

#include "tests/cuda_on_cpu/device_array.h"

namespace cuda_on_cpu {
namespace {

// Every thread writes what it is to where it belongs.
__global__ void WriteGeometry(int4* out) {
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  const unsigned threads = blockDim.x * blockDim.y * blockDim.z;
  out[block * threads + thread] =
      make_int4(static_cast<int>(block), static_cast<int>(threadIdx.x),
                static_cast<int>(threadIdx.y), static_cast<int>(threadIdx.z));
}

TEST(LaunchTest, RunsEveryThreadOfEveryBlock) {
  const dim3 grid(3, 2, 2);
  const dim3 block(5, 3, 2);
  InEveryOrder([&] {
    const DeviceArray<int4> out(12 * 30);
    RunKernel(WriteGeometry, grid, block, 0, out.data());
    int i = 0;
    for (const int4 seen : out.values()) {
      EXPECT_EQ(seen.x, i / 30);
      EXPECT_EQ(seen.y, i % 5);
      EXPECT_EQ(seen.z, i / 5 % 3);
      EXPECT_EQ(seen.w, i % 30 / 15);
      ++i;
    }
  });
}

__global__ void Nothing() {}

TEST(LaunchTest, RefusesWhatADeviceRefuses) {
  const auto launch = [](dim3 grid, dim3 block, size_t shared_bytes) {
    const cudaError_t error =
        LaunchKernel(nullptr, "nothing", Nothing, grid, block, shared_bytes, false);
    EXPECT_EQ(cudaGetLastError(), error);
    return error;
  };
  EXPECT_EQ(launch(1, 1024, 227 << 10), cudaSuccess);
  EXPECT_EQ(launch(1, dim3(32, 32, 2), 0), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch(1, 1025, 0), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch(1, dim3(1, 1, 65), 0), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch(0, 32, 0), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch(1, 0, 0), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch(dim3(1, 65536), 32, 0), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch(1, 32, (227 << 10) + 1), cudaErrorInvalidValue);
}

TEST(LaunchTest, CountsLaunches) {
  ResetLaunchCounts();
  for (int i = 0; i < 3; ++i) LaunchKernel(nullptr, "a", Nothing, 2, 32, 0, false);
  LaunchKernel(nullptr, "b", Nothing, 1, 32, 0, false);
  LaunchKernel(nullptr, "b", Nothing, 0, 32, 0, false);  // refused
  EXPECT_EQ(LaunchCount(), 4);
  EXPECT_EQ(LaunchCount("a"), 3);
  EXPECT_EQ(LaunchCount("b"), 1);
  EXPECT_EQ(LaunchCount("c"), 0);
  ResetLaunchCounts();
  EXPECT_EQ(LaunchCount(), 0);
}

__global__ void WaitsButForOne(int which) {
  if (static_cast<int>(threadIdx.x) != which) WaitForPrerequisites();
}

TEST(LaunchTest, EveryThreadOfADependentLaunchWaits) {
  const auto launch = [](bool dependent, int which) {
    return LaunchKernel(nullptr, "dependent", WaitsButForOne, 2, 64, 0, dependent, which);
  };
  EXPECT_EQ(launch(true, -1), cudaSuccess);
  EXPECT_EQ(launch(false, 40), cudaSuccess);
  try {
    launch(true, 40);
    ADD_FAILURE() << "nothing was seen";
  } catch (const std::logic_error& error) {
    EXPECT_STREQ(error.what(),
                 "dependent: block (0, 0, 0): thread (40, 0, 0) ends without having waited for the "
                 "kernels before");
  }
}

// The threads, in the order in which they come.
__global__ void Queue(int* place, int* order) {
  order[atomicAdd(place, 1)] = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
}

std::vector<int> SeenOrder() {
  const DeviceArray<int> place(std::vector<int>{0});
  const DeviceArray<int> order(128);
  RunKernel(Queue, 2, 64, 0, place.data(), order.data());
  return order.values();
}

TEST(LaunchTest, OrdersThreadsAsAsked) {
  SetThreadOrder(ThreadOrder::kForward);
  const std::vector<int> forward = SeenOrder();
  for (int i = 0; i < 128; ++i) EXPECT_EQ(forward[static_cast<size_t>(i)], i);
  SetThreadOrder(ThreadOrder::kReverse);
  const std::vector<int> reverse = SeenOrder();
  for (int i = 0; i < 128; ++i) EXPECT_EQ(reverse[static_cast<size_t>(i)], 127 - i);

  std::set<std::vector<int>> shuffled;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    SetThreadOrder(ThreadOrder::kShuffled, seed);
    shuffled.insert(SeenOrder());
    SetThreadOrder(ThreadOrder::kShuffled, seed);
    EXPECT_FALSE(shuffled.insert(SeenOrder()).second) << "a seed gives one order";
  }
  EXPECT_EQ(shuffled.size(), 10u);
  for (const std::vector<int>& order : shuffled) {
    EXPECT_EQ(std::set<int>(order.begin(), order.end()).size(), 128u);
  }
  SetThreadOrder(ThreadOrder::kForward);
}

__global__ void ReadUnwritten(float* dynamic_shared, float* global, const float* unwritten) {
  *dynamic_shared = reinterpret_cast<float*>(DynamicSharedMemory())[7];
  *global = unwritten[blockIdx.x];
  reinterpret_cast<float*>(DynamicSharedMemory())[7] = 1;
}

TEST(LaunchTest, UnwrittenMemoryIsNotANumber) {
  const DeviceArray<float> shared(1);
  const DeviceArray<float> global(1);
  const DeviceArray<float> unwritten(2);
  for (int i = 0; i < 2; ++i) {
    RunKernel(ReadUnwritten, 1, 1, 32, shared.data(), global.data(), unwritten.data());
    EXPECT_TRUE(isnan(shared.values()[0]));
    EXPECT_TRUE(isnan(global.values()[0]));
  }
}

// ---- Atomics ------------------------------------------------------------------------------------

struct Totals {
  int sum;
  float float_sum;
  unsigned long long count;
  unsigned maximum;
  int minimum;
  int exchanged;
  int claimed;
};

__global__ void UpdateTotals(Totals* totals) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  atomicAdd(&totals->sum, i);
  atomicAdd(&totals->float_sum, 0.5f);
  atomicAdd(&totals->count, 1ull);
  atomicMax(&totals->maximum, static_cast<unsigned>(i));
  atomicMin(&totals->minimum, -i);
  atomicExch(&totals->exchanged, i);
  if (atomicCAS(&totals->claimed, -1, i) == -1) atomicAdd(&totals->claimed, 1000);
}

TEST(LaunchTest, AtomicsAddUpOverBlocks) {
  InEveryOrder([] {
    const DeviceArray<Totals> totals(std::vector<Totals>{{0, 0, 0, 0, 0, -1, -1}});
    RunKernel(UpdateTotals, 4, 64, 0, totals.data());
    const Totals t = totals.values()[0];
    EXPECT_EQ(t.sum, 256 * 255 / 2);
    EXPECT_EQ(t.float_sum, 128.0f);
    EXPECT_EQ(t.count, 256u);
    EXPECT_EQ(t.maximum, 255u);
    EXPECT_EQ(t.minimum, -255);
    EXPECT_GE(t.exchanged, 0);
    EXPECT_GE(t.claimed, 1000);
  });
}

// The last block to come adds what all have written.
__global__ void SumOfBlocks(float* parts, unsigned* done, float* sum) {
  parts[blockIdx.x] = static_cast<float>(blockIdx.x + 1);
  __threadfence();
  if (atomicAdd(done, 1u) + 1 < gridDim.x) return;
  __threadfence();
  *sum = 0;
  for (unsigned i = 0; i < gridDim.x; ++i) *sum += parts[i];
}

TEST(LaunchTest, FencesOrderBlocks) {
  InEveryOrder([] {
    const DeviceArray<float> parts(8);
    const DeviceArray<unsigned> done(std::vector<unsigned>{0});
    const DeviceArray<float> sum(1);
    RunKernel(SumOfBlocks, 8, 1, 0, parts.data(), done.data(), sum.data());
    EXPECT_EQ(sum.values()[0], 36.0f);
  });
}

}  // namespace
}  // namespace cuda_on_cpu
