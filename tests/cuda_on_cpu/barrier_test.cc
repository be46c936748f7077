#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "tests/cuda_on_cpu/device_array.h"

namespace cuda_on_cpu {
namespace {

using ::testing::HasSubstr;

// Each round every thread takes the number of its right neighbour: after n rounds, n further.
__global__ void Rotate(int rounds, int* out) {
  __shared__ int numbers[2][1024];
  const unsigned i = threadIdx.x;
  numbers[0][i] = static_cast<int>(i);
  for (int round = 0; round < rounds; ++round) {
    __syncthreads();
    numbers[(round + 1) % 2][i] = numbers[round % 2][(i + 1) % blockDim.x];
  }
  out[blockIdx.x * blockDim.x + i] = numbers[rounds % 2][i];
}

TEST(BarrierTest, OrdersTheWholeBlock) {
  for (const int threads : {1, 31, 32, 33, 200, 1024}) {
    InEveryOrder([&] {
      const DeviceArray<int> out(static_cast<size_t>(2 * threads));
      RunKernel(Rotate, 2, static_cast<unsigned>(threads), 0, 7, out.data());
      const std::vector<int> values = out.values();
      for (int i = 0; i < 2 * threads; ++i) {
        ASSERT_EQ(values[static_cast<size_t>(i)], (i % threads + 7) % threads) << threads;
      }
    });
  }
}

__global__ void Vote(int threshold, int4* out) {
  const bool above = static_cast<int>(threadIdx.x) >= threshold;
  const int any = __syncthreads_or(above);
  const int all = __syncthreads_and(above);
  const int count = __syncthreads_count(above);
  out[threadIdx.x] = make_int4(any, all, count, 0);
}

TEST(BarrierTest, CountsPredicates) {
  const int threads = 70;
  for (const int threshold : {0, 1, 50, 69, 70}) {
    const DeviceArray<int4> out(static_cast<size_t>(threads));
    RunKernel(Vote, 1, static_cast<unsigned>(threads), 0, threshold, out.data());
    for (const int4 seen : out.values()) {
      EXPECT_EQ(seen.x, threshold < threads ? 1 : 0);
      EXPECT_EQ(seen.y, threshold == 0 ? 1 : 0);
      EXPECT_EQ(seen.z, threads - threshold);
    }
  }
}

// ---- Faults -------------------------------------------------------------------------------------

__global__ void OneWarpWaits() {
  if (threadIdx.x < 32) __syncthreads();
}
__global__ void SomeReturnFirst(unsigned limit) {
  if (threadIdx.x >= limit) return;
  __syncthreads();
}
__global__ void DifferentNumbers() {
  for (unsigned i = 0; i < threadIdx.x % 2 + 1; ++i) __syncthreads();
}
__global__ void DifferentKinds() {
  if (threadIdx.x == 0) {
    __syncthreads();
  } else {
    __syncthreads_or(1);
  }
}
__global__ void BlockOneOnly() {
  if (blockIdx.x == 1 && threadIdx.x == 5) __syncthreads();
}

template <typename... P>
std::string FaultOf(void (*kernel)(P...), dim3 grid, dim3 block,
                    std::type_identity_t<P>... arguments) {
  try {
    LaunchKernel(nullptr, "divergent", kernel, grid, block, 0, false, arguments...);
  } catch (const std::logic_error& error) {
    return error.what();
  }
  return "none";
}

TEST(BarrierTest, DivergentBarriersAreErrors) {
  InEveryOrder([] {
    EXPECT_THAT(FaultOf(OneWarpWaits, 1, 64),
                HasSubstr("divergent: block (0, 0, 0) cannot go on: 32 threads wait at a barrier "
                          "of the block, 0 at an operation of their warp, 32 have ended"));
    EXPECT_THAT(FaultOf(SomeReturnFirst, 1, 64, 50u), HasSubstr("14 have ended"));
    EXPECT_THAT(FaultOf(DifferentNumbers, 1, 64), HasSubstr("32 threads wait at a barrier"));
    EXPECT_THAT(FaultOf(DifferentKinds, 1, 64), HasSubstr("a barrier of another kind"));
    EXPECT_THAT(
        FaultOf(BlockOneOnly, 2, 64),
        HasSubstr("block (1, 0, 0) cannot go on: 1 threads wait at a barrier of the "
                  "block, 0 at an operation of their warp, 63 have ended; thread (5, 0, 0)"));
    EXPECT_EQ(FaultOf(SomeReturnFirst, 1, 64, 0u), "none") << "all return";
  });
}

TEST(BarrierTest, KernelsRunAfterAFault) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_NE(FaultOf(SomeReturnFirst, 1, 1024, 700u), "none");
    const DeviceArray<int> out(1024);
    RunKernel(Rotate, 1, 1024, 0, 1, out.data());
    EXPECT_EQ(out.values()[3], 4);
  }
}

}  // namespace
}  // namespace cuda_on_cpu
