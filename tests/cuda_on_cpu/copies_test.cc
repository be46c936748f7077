#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <string>

#include "kernels/cuda/base/mma.cuh"
#include "tests/cuda_on_cpu/device_array.h"

namespace hippodrome::cuda::copies_test {
namespace {

using cuda_on_cpu::DeviceArray;
using cuda_on_cpu::InEveryOrder;
using cuda_on_cpu::RunKernel;
using cuda_on_cpu::SetThreadOrder;
using cuda_on_cpu::ThreadOrder;

constexpr int kThreads = 32;
constexpr int kTiles = 6;  // of 4 floats per thread

std::vector<float> Numbers(size_t n) {
  std::vector<float> values(n);
  for (size_t i = 0; i < n; ++i) values[i] = static_cast<float>(i);
  return values;
}

// Copies tiles through two buffers and adds them up; every thread reads what another copied.
__global__ void AddTiles(const float4* in, float* out) {
  auto* buffers = reinterpret_cast<float4*>(SharedMemory());
  const int i = static_cast<int>(threadIdx.x);
  CopyAsync16(&buffers[i], in + i);
  CommitCopies();
  float sum = 0;
  for (int tile = 0; tile < kTiles; ++tile) {
    const int next = tile + 1;
    const bool valid = next < kTiles;
    CopyAsync16(&buffers[next % 2 * kThreads + i], valid ? in + next * kThreads + i : in, valid);
    CommitCopies();
    WaitForCopies<1>();
    __syncthreads();
    const float4 x = buffers[tile % 2 * kThreads + (i + 1) % kThreads];
    sum += x.x + x.y + x.z + x.w;
    __syncthreads();
  }
  WaitForCopies<0>();
  out[i] = sum + buffers[i].x;  // zeros: the last copy was not valid
}

TEST(CopiesTest, ArriveWhenWaitedFor) {
  InEveryOrder([] {
    const DeviceArray<float> in(Numbers(4 * kThreads * kTiles));
    const DeviceArray<float> out(kThreads);
    RunKernel(AddTiles, 1, kThreads, 2 * kThreads * 16, reinterpret_cast<const float4*>(in.data()),
              out.data());
    const std::vector<float> sums = out.values();
    for (int i = 0; i < kThreads; ++i) {
      float sum = 0;
      for (int tile = 0; tile < kTiles; ++tile) {
        for (int e = 0; e < 4; ++e) {
          sum += static_cast<float>(4 * (tile * kThreads + (i + 1) % kThreads) + e);
        }
      }
      EXPECT_EQ(sums[static_cast<size_t>(i)], sum);
    }
  });
}

// One group more than it waits for.
__global__ void ReadTooEarly(const float4* in, float* out) {
  auto* buffers = reinterpret_cast<float4*>(SharedMemory());
  CopyAsync16(&buffers[0], in);
  CommitCopies();
  CopyAsync16(&buffers[1], in + 1);
  CommitCopies();
  WaitForCopies<1>();
  out[0] = buffers[0].x;
  out[1] = buffers[1].x;
}

TEST(CopiesTest, AreLateUntilWaitedFor) {
  const DeviceArray<float> in(Numbers(8));
  const DeviceArray<float> out(2);
  RunKernel(ReadTooEarly, 1, 1, 32, reinterpret_cast<const float4*>(in.data()), out.data());
  EXPECT_EQ(out.values()[0], 0.0f);
  EXPECT_TRUE(std::isnan(out.values()[1]));
}

// Overwrites what is still to be read: right only if the copy is late.
__global__ void CopyTooEarly(const float4* in, float* out) {
  auto* buffer = reinterpret_cast<float4*>(SharedMemory());
  *buffer = make_float4(-1, -1, -1, -1);
  CopyAsync16(buffer, in);
  CommitCopies();
  *out = buffer->x;
  WaitForCopies<0>();
}

TEST(CopiesTest, ArriveAtOnceInSomeOrders) {
  const DeviceArray<float> in(Numbers(4));
  const DeviceArray<float> out(1);
  int at_once = 0;
  for (uint64_t seed = 0; seed < 32; ++seed) {
    SetThreadOrder(ThreadOrder::kShuffled, seed);
    RunKernel(CopyTooEarly, 1, 1, 16, reinterpret_cast<const float4*>(in.data()), out.data());
    at_once += out.values()[0] == 0 ? 1 : 0;
  }
  SetThreadOrder(ThreadOrder::kForward);
  EXPECT_GT(at_once, 4);
  EXPECT_LT(at_once, 28);
}

__global__ void CopyMisaligned(const float* in) { CopyAsync16(SharedMemory(), in + 1); }

TEST(CopiesTest, MisalignmentIsAnError) {
  const DeviceArray<float> in(8);
  try {
    RunKernel(CopyMisaligned, 1, 1, 16, in.data());
    FAIL();
  } catch (const std::logic_error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("not aligned to 16 bytes"));
  }
}

__global__ void AskFor(const char* from, int64_t bytes) {
  PrefetchToL2(true, from + 16 * threadIdx.x, bytes);
}

TEST(PrefetchTest, TheLastKernelsPiecesAreJoined) {
  const DeviceArray<float> in(100);
  RunKernel(AskFor, 1, 5, 0, reinterpret_cast<const char*>(in.data()), int64_t{16});
  EXPECT_EQ(cuda_on_cpu::LastPrefetches(), (std::vector<cuda_on_cpu::Prefetched>{{in.data(), 80}}));
  RunKernel(AskFor, 1, 2, 0, reinterpret_cast<const char*>(in.data()), int64_t{32});
  EXPECT_EQ(cuda_on_cpu::LastPrefetches().size(), 2u);  // they overlap
}

TEST(PrefetchTest, OtherMemoryIsAnError) {
  const DeviceArray<float> in(8);
  const auto* const first = reinterpret_cast<const char*>(in.data());
  for (const auto& [from, bytes] : {std::pair<const char*, int64_t>{first, 48},
                                    {first + 8, 16},
                                    {first, 8},
                                    {reinterpret_cast<const char*>(&in), 16}}) {
    EXPECT_THROW(RunKernel(AskFor, 1, 1, 0, from, bytes), std::logic_error);
  }
}

}  // namespace
}  // namespace hippodrome::cuda::copies_test
