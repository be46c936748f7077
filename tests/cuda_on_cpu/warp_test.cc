#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "tests/cuda_on_cpu/device_array.h"

namespace cuda_on_cpu {
namespace {

using ::testing::HasSubstr;

constexpr unsigned kAll = 0xffffffffu;

template <typename T>
struct Shuffled {
  T index, up, down, x_or;
};

template <typename T>
__global__ void ShuffleAll(int argument, int width, Shuffled<T>* out) {
  const T value = static_cast<T>(threadIdx.x) * static_cast<T>(3);
  out[threadIdx.x].index = __shfl_sync(kAll, value, argument, width);
  out[threadIdx.x].up = __shfl_up_sync(kAll, value, static_cast<unsigned>(argument), width);
  out[threadIdx.x].down = __shfl_down_sync(kAll, value, static_cast<unsigned>(argument), width);
  out[threadIdx.x].x_or = __shfl_xor_sync(kAll, value, argument, width);
}

// What the programming guide says of segments of `width` lanes.
template <typename T>
void CheckShuffles(int argument, int width) {
  const DeviceArray<Shuffled<T>> out(64);
  RunKernel(ShuffleAll<T>, 1, 64, 0, argument, width, out.data());
  int i = 0;
  for (const Shuffled<T>& seen : out.values()) {
    const int in_segment = i % width;
    const int begin = i - in_segment;
    EXPECT_EQ(seen.index, static_cast<T>(3 * (begin + argument % width)));
    EXPECT_EQ(seen.up, static_cast<T>(3 * (in_segment >= argument ? i - argument : i)));
    EXPECT_EQ(seen.down, static_cast<T>(3 * (in_segment + argument < width ? i + argument : i)));
    const int partner = i % 32 ^ argument;
    EXPECT_EQ(seen.x_or,
              static_cast<T>(3 * (partner < begin % 32 + width ? i - i % 32 + partner : i)));
    ++i;
  }
}

TEST(WarpTest, ShufflesMoveValues) {
  InEveryOrder([] {
    for (const int width : {1, 2, 8, 16, 32}) {
      for (const int argument : {0, 1, 3, 16, 31}) CheckShuffles<int>(argument, width);
    }
    CheckShuffles<unsigned>(1, 32);
    CheckShuffles<float>(2, 32);
    CheckShuffles<double>(4, 32);
    CheckShuffles<long long>(8, 32);
    CheckShuffles<unsigned long long>(16, 32);
  });
}

__global__ void VoteAll(unsigned ones, int4* out) {
  const int predicate = static_cast<int>(ones >> threadIdx.x & 1);
  out[threadIdx.x] = make_int4(static_cast<int>(__ballot_sync(kAll, predicate)),
                               __any_sync(kAll, predicate), __all_sync(kAll, predicate), 0);
}

TEST(WarpTest, VotesCollectPredicates) {
  for (const unsigned ones : {0u, 1u, 0xdeadbeefu, kAll}) {
    const DeviceArray<int4> out(32);
    RunKernel(VoteAll, 1, 32, 0, ones, out.data());
    for (const int4 seen : out.values()) {
      EXPECT_EQ(static_cast<unsigned>(seen.x), ones);
      EXPECT_EQ(seen.y, ones != 0 ? 1 : 0);
      EXPECT_EQ(seen.z, ones == kAll ? 1 : 0);
    }
  }
}

// Halves of a warp, with different numbers of operations, then together.
__global__ void Halves(int* out) {
  const unsigned half = threadIdx.x / 16;
  const unsigned mask = half == 0 ? 0xffffu : 0xffff0000u;
  int sum = static_cast<int>(threadIdx.x);
  for (int i = 8; i > 0; i /= 2) sum += __shfl_xor_sync(mask, sum, i);
  if (half == 0) sum += __shfl_sync(mask, sum, 0);
  __syncwarp();
  out[threadIdx.x] = sum + __shfl_xor_sync(kAll, sum, 16);
}

TEST(WarpTest, PartsOfAWarpMeetByMask) {
  InEveryOrder([] {
    const DeviceArray<int> out(32);
    RunKernel(Halves, 1, 32, 0, out.data());
    const int first = 15 * 16 / 2;
    for (const int seen : out.values()) EXPECT_EQ(seen, 2 * first + first + 16 * 16);
  });
}

__global__ void Exchange(int* out) {
  __shared__ int numbers[64];
  numbers[threadIdx.x] = static_cast<int>(threadIdx.x);
  __syncwarp();
  const int next = numbers[threadIdx.x / 32 * 32 + (threadIdx.x + 1) % 32];
  __syncwarp();
  numbers[threadIdx.x] = next;
  __syncwarp();
  out[threadIdx.x] = numbers[threadIdx.x / 32 * 32 + (threadIdx.x + 1) % 32];
}

TEST(WarpTest, WarpBarriersOrderLanes) {
  InEveryOrder([] {
    const DeviceArray<int> out(64);
    RunKernel(Exchange, 1, 64, 0, out.data());
    int i = 0;
    for (const int seen : out.values()) {
      EXPECT_EQ(seen, i / 32 * 32 + (i + 2) % 32);
      ++i;
    }
  });
}

// ---- Faults -------------------------------------------------------------------------------------

__global__ void LaneMissing() {
  if (threadIdx.x != 7) __syncwarp();
}
__global__ void NotInMask() { __shfl_sync(0xffffu, 1, 0); }
__global__ void ReadsOutsideMask() {
  if (threadIdx.x < 16) __shfl_sync(0xffffu, 1, 20);
}
__global__ void DifferentOperations() {
  if (threadIdx.x == 3) {
    __ballot_sync(kAll, 1);
  } else {
    __shfl_sync(kAll, 1, 0);
  }
}
__global__ void OddWidth() { __shfl_sync(kAll, 1, 0, 12); }
__global__ void HalfAWarp() { __syncwarp(); }

std::string FaultOf(void (*kernel)(), unsigned threads = 32) {
  try {
    RunKernel(kernel, 1, threads, 0);
  } catch (const std::logic_error& error) {
    return error.what();
  }
  return "none";
}

TEST(WarpTest, FaultsAreErrors) {
  InEveryOrder([] {
    EXPECT_THAT(FaultOf(LaneMissing),
                HasSubstr("test: block (0, 0, 0) cannot go on: 0 threads wait at a barrier of the "
                          "block, 31 at an operation of their warp, 1 have ended"));
    EXPECT_THAT(FaultOf(NotInMask), HasSubstr("is not in the mask of its own"));
    EXPECT_THAT(FaultOf(ReadsOutsideMask), HasSubstr("reads from a lane that is not in the mask"));
    EXPECT_THAT(FaultOf(DifferentOperations), HasSubstr("32 at an operation of their warp"));
    EXPECT_THAT(FaultOf(OddWidth), HasSubstr("no power of two"));
    EXPECT_THAT(FaultOf(HalfAWarp, 16), HasSubstr("16 at an operation of their warp"));
    EXPECT_EQ(FaultOf(HalfAWarp), "none");
  });
}

}  // namespace
}  // namespace cuda_on_cpu
