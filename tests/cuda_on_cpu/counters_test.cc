// Kernels whose counts are known on paper.
#include "tests/cuda_on_cpu/counters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cuda_on_cpu/device_array.h"

namespace cuda_on_cpu {
namespace {

constexpr int kLanes = 32;

class CountersTest : public testing::Test {
 protected:
  void SetUp() override { ResetCounts(); }
  static KernelCounts Seen() { return Counts().at("test"); }
};

__global__ void Copy(const float* from, float* to) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] = from[i];
}

TEST_F(CountersTest, CopyMovesWholeSectors) {
  const DeviceArray<float> from(std::vector<float>(1024, 1.0f));
  const DeviceArray<float> to(1024);
  RunKernel(Copy, 4, 256, 0, from.data(), to.data());
  const KernelCounts counts = Seen();
  EXPECT_EQ(counts.launches, 1);
  EXPECT_EQ(counts.blocks, 4);
  EXPECT_EQ(counts.threads, 1024);
  for (const Access access : {Access::kGlobalRead, Access::kGlobalWrite}) {
    EXPECT_EQ(counts.Of(access).requests, 32);
    EXPECT_EQ(counts.Of(access).bytes, 4096);
    EXPECT_EQ(counts.Of(access).units, 128);
    EXPECT_EQ(counts.Of(access).least_units, 128);
    EXPECT_EQ(counts.Of(access).partial, 0);
  }
  EXPECT_EQ(counts.distinct_read, 4096);
  EXPECT_EQ(counts.distinct_written, 4096);
  EXPECT_EQ(counts.dram_read, 4096);
  EXPECT_EQ(counts.dram_written, 4096);
  EXPECT_EQ(counts.l2_sectors, 256);
  EXPECT_EQ(counts.Of(Access::kSharedRead).requests, 0);
}

__global__ void CopyVectors(const float4* from, float4* to) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  const float4 x = from[i];
  to[i] = make_float4(x.x, x.y, x.z, x.w + 1);
}

TEST_F(CountersTest, VectorIsOneAccess) {
  const DeviceArray<float4> from(64);
  const DeviceArray<float4> to(64);
  RunKernel(CopyVectors, 1, 64, 0, from.data(), to.data());
  EXPECT_EQ(Seen().Of(Access::kGlobalRead).requests, 2);
  EXPECT_EQ(Seen().Of(Access::kGlobalRead).units, 32);
  EXPECT_EQ(Seen().Of(Access::kGlobalWrite).requests, 2);
  EXPECT_EQ(Seen().Of(Access::kGlobalWrite).bytes, 1024);
}

__global__ void ReadEarly(const float* from, float* to) {
  const float x = from[threadIdx.x];
  WaitForPrerequisites();
  to[threadIdx.x] = x;
}
constexpr int kLineOfReadEarly = __LINE__ - 4;

__global__ void ReadInTime(const float* from, float* to) {
  __shared__ float constants[kLanes];
  constants[threadIdx.x] = 1;
  WaitForPrerequisites();
  to[threadIdx.x] = constants[threadIdx.x] * from[threadIdx.x];
}

TEST_F(CountersTest, ADependentLaunchTouchesNothingBeforeItHasWaited) {
  const DeviceArray<float> from(kLanes);
  const DeviceArray<float> to(kLanes);
  const auto launch = [&](void (*kernel)(const float*, float*), bool dependent) {
    LaunchKernel(nullptr, "test", kernel, 1, kLanes, 0, dependent, from.data(), to.data());
  };
  launch(ReadInTime, true);
  launch(ReadEarly, false);
  const std::string line = "tests/cuda_on_cpu/counters_test.cc:" + std::to_string(kLineOfReadEarly);
  EXPECT_THAT([&] { launch(ReadEarly, true); },
              testing::ThrowsMessage<std::logic_error>(
                  testing::AllOf(testing::HasSubstr("touches device memory before it has waited"),
                                 testing::EndsWith(line))));
}

__global__ void CopyStrided(const float* from, float* to, int stride) {
  to[threadIdx.x] = from[threadIdx.x * static_cast<unsigned>(stride)];
}

TEST_F(CountersTest, StridedCopyReadsASectorForEachNumber) {
  const DeviceArray<float> from(kLanes * 8);
  const DeviceArray<float> to(kLanes);
  RunKernel(CopyStrided, 1, kLanes, 0, from.data(), to.data(), 8);
  const MemoryCounts read = Seen().Of(Access::kGlobalRead);
  EXPECT_EQ(read.bytes, 128);
  EXPECT_EQ(read.units, 32);
  EXPECT_EQ(read.least_units, 4);
  EXPECT_EQ(Seen().distinct_read, 128);
  EXPECT_EQ(Seen().dram_read, 1024);
}

template <int kWidth>
__global__ void Transpose(const float* from, float* to) {
  __shared__ float square[kLanes][kWidth];
  for (unsigned i = threadIdx.y; i < kLanes; i += blockDim.y) {
    square[i][threadIdx.x] = from[i * kLanes + threadIdx.x];
  }
  __syncthreads();
  for (unsigned i = threadIdx.y; i < kLanes; i += blockDim.y) {
    to[i * kLanes + threadIdx.x] = square[threadIdx.x][i];
  }
}

TEST_F(CountersTest, TransposeHasConflictsWithoutPadding) {
  const DeviceArray<float> from(kLanes * kLanes);
  const DeviceArray<float> to(kLanes * kLanes);
  RunKernel(Transpose<kLanes>, 1, dim3(kLanes, 4), 0, from.data(), to.data());
  EXPECT_EQ(Seen().Of(Access::kSharedWrite).units, 32);
  EXPECT_EQ(Seen().Of(Access::kSharedRead).requests, 32);
  EXPECT_EQ(Seen().Of(Access::kSharedRead).units, 32 * 32);
  EXPECT_EQ(Seen().Of(Access::kSharedRead).least_units, 32);
  EXPECT_EQ(Seen().barriers, 1);
  ASSERT_EQ(Seen().barrier_sites.size(), 1u);
  EXPECT_EQ(Seen().barrier_sites[0].needed, 1);
}

TEST_F(CountersTest, TransposeHasNoConflictsWithPadding) {
  const DeviceArray<float> from(kLanes * kLanes);
  const DeviceArray<float> to(kLanes * kLanes);
  RunKernel(Transpose<kLanes + 1>, 1, dim3(kLanes, 4), 0, from.data(), to.data());
  EXPECT_EQ(Seen().Of(Access::kSharedRead).units, 32);
}

__global__ void ReadPairs(float* to, int distance) {
  __shared__ float2 pairs[2 * kLanes];
  pairs[threadIdx.x] = make_float2(1, 2);
  pairs[threadIdx.x + kLanes] = make_float2(3, 4);
  __syncthreads();
  const float2 x = pairs[threadIdx.x * static_cast<unsigned>(distance)];
  to[threadIdx.x] = x.x + x.y;
}

TEST_F(CountersTest, PairsComeInHalvesOfAWarp) {
  const DeviceArray<float> to(kLanes);
  const auto wavefronts = [&](int distance) {
    ResetCounts();
    RunKernel(ReadPairs, 1, kLanes, 0, to.data(), distance);
    return Seen().Of(Access::kSharedRead).units;
  };
  EXPECT_EQ(wavefronts(1), 2);
  EXPECT_EQ(wavefronts(2), 4);
  EXPECT_EQ(wavefronts(0), 1);
}

// c = a b, [n, n] each, in tiles of kTile.
constexpr unsigned kTile = 16;
__global__ void Multiply(const float* a, const float* b, float* c, unsigned n) {
  __shared__ float left[kTile][kTile];
  __shared__ float right[kTile][kTile];
  const unsigned row = blockIdx.y * kTile + threadIdx.y;
  const unsigned column = blockIdx.x * kTile + threadIdx.x;
  float sum = 0;
  for (unsigned k = 0; k < n; k += kTile) {
    left[threadIdx.y][threadIdx.x] = a[row * n + k + threadIdx.x];
    right[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + column];
    __syncthreads();
    for (unsigned i = 0; i < kTile; ++i) sum += left[threadIdx.y][i] * right[i][threadIdx.x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}

TEST_F(CountersTest, TiledProductReadsEachMatrixOnceForEachTile) {
  constexpr int64_t kSize = 64;
  constexpr int64_t kTiles = kSize / kTile;
  const DeviceArray<float> a(std::vector<float>(kSize * kSize, 1.0f));
  const DeviceArray<float> b(std::vector<float>(kSize * kSize, 1.0f));
  const DeviceArray<float> c(kSize * kSize);
  RunKernel(Multiply, dim3(kTiles, kTiles), dim3(kTile, kTile), 0, a.data(), b.data(), c.data(),
            kSize);
  const KernelCounts counts = Seen();
  const int64_t matrix = kSize * kSize * 4;
  EXPECT_EQ(counts.Of(Access::kGlobalRead).bytes, 2 * kTiles * matrix);
  EXPECT_EQ(counts.Of(Access::kGlobalRead).units, 2 * kTiles * matrix / 32);
  EXPECT_EQ(counts.distinct_read, 2 * matrix);
  EXPECT_EQ(counts.dram_read, 2 * matrix);
  EXPECT_EQ(counts.distinct_written, matrix);
  // A warp has two rows of a tile: of the left tile it reads two words in one wavefront, of the
  // right one 16.
  const int64_t warps = kTiles * kTiles * (kTile * kTile / kLanes);
  EXPECT_EQ(counts.Of(Access::kSharedRead).requests, warps * kTiles * 2 * kTile);
  EXPECT_EQ(counts.Of(Access::kSharedRead).units, warps * kTiles * 2 * kTile);
  EXPECT_EQ(counts.barriers, kTiles * kTiles * kTiles * 2);
  for (const BarrierSite& site : counts.barrier_sites) {
    // The last barrier of the loop guards nothing.
    EXPECT_GE(site.needed, kTiles * kTiles * (kTiles - 1)) << SourceLines(site.place);
  }
}

__global__ void AddToOne(float* sum) { atomicAdd(sum, 1.0f); }

TEST_F(CountersTest, AtomicsOfLanes) {
  const DeviceArray<float> sum(std::vector<float>{0});
  RunKernel(AddToOne, 2, kLanes, 0, sum.data());
  EXPECT_EQ(Seen().atomics, 64);
  EXPECT_EQ(Seen().Of(Access::kGlobalWrite).requests, 2);
  EXPECT_EQ(sum.values()[0], 64);
}

__global__ void SumTwice(const float* from, float* to) {
  float sum = 0;
  for (int round = 0; round < 2; ++round) {
    for (unsigned i = threadIdx.x; i < 1024; i += blockDim.x) sum += from[i];
  }
  to[threadIdx.x] = sum;
}

TEST_F(CountersTest, WhatACacheDoesNotHoldComesFromDramAgain) {
  const DeviceArray<float> from(std::vector<float>(1024, 1.0f));
  const DeviceArray<float> to(kLanes);
  const auto read = [&] {
    ResetCounts();
    RunKernel(SumTwice, 1, kLanes, 0, from.data(), to.data());
    EXPECT_EQ(Seen().distinct_read, 4096);
    EXPECT_EQ(Seen().dram_written, 128);
    return Seen().dram_read;
  };
  EXPECT_EQ(read(), 4096);
  SetCacheBytes(2048);
  EXPECT_EQ(read(), 8192);
  SetCacheBytes(size_t{50} << 20);
}

// ---- What is found, and where -------------------------------------------------------------------

// The line of a kernel that is at fault stands behind it.
constexpr int kUncoalesced = __LINE__ + 2;
__global__ void ReadColumn(const float* from, float* to) {
  to[threadIdx.x] = from[threadIdx.x * kLanes];
}

constexpr int kConflict = __LINE__ + 5;
__global__ void ReadSharedColumn(float* to) {
  __shared__ float square[kLanes * kLanes];
  for (unsigned i = threadIdx.x; i < kLanes * kLanes; i += kLanes) square[i] = 1;
  __syncthreads();
  to[threadIdx.x] = square[threadIdx.x * kLanes];
}

constexpr int kReload = __LINE__ + 4;
__global__ void ReadEachTime(const float* from, float* to) {
  float sum = 0;
  for (int i = 0; i < 8; ++i) {
    sum += *static_cast<const volatile float*>(from + threadIdx.x);
  }
  to[threadIdx.x] = sum;
}

constexpr int kNeedless = __LINE__ + 6;
__global__ void WaitForNobody(const float* from, float* to) {
  __shared__ float turned[2 * kLanes];
  const unsigned i = threadIdx.x;
  turned[i] = from[i];
  const unsigned other = blockDim.x - 1 - i;
  __syncthreads();
  __syncthreads();
  to[i] = turned[other];
}

class InefficienciesTest : public CountersTest {
 protected:
  // That is all that is found, at this line.
  static void ExpectAlone(int line, const std::string& what) {
    EXPECT_THAT(Inefficiencies(Seen()),
                testing::ElementsAre(
                    testing::AllOf(testing::HasSubstr("counters_test.cc:" + std::to_string(line)),
                                   testing::HasSubstr(what))));
  }

  const DeviceArray<float> square_{std::vector<float>(kLanes * kLanes, 1.0f)};
  const DeviceArray<float> row_{kLanes * 2};
};

TEST_F(InefficienciesTest, NothingInAGoodKernel) {
  RunKernel(Copy, 4, 256, 0, square_.data(), DeviceArray<float>(1024).data());
  EXPECT_THAT(Inefficiencies(Seen()), testing::IsEmpty());
}

TEST_F(InefficienciesTest, UncoalescedReads) {
  RunKernel(ReadColumn, 1, kLanes, 0, square_.data(), row_.data());
  ExpectAlone(kUncoalesced, "uncoalesced: reads 4.0 of each 32 bytes, 32 sectors for 128 bytes");
}

TEST_F(InefficienciesTest, BankConflictsOf32Ways) {
  RunKernel(ReadSharedColumn, 1, kLanes, 0, row_.data());
  ExpectAlone(kConflict, "bank conflicts: 32 wavefronts, 32.0 times the least");
}

TEST_F(InefficienciesTest, Reloads) {
  RunKernel(ReadEachTime, 1, kLanes, 0, square_.data(), row_.data());
  ExpectAlone(kReload, "reloads: the block has read 28 of 32 sectors before");
}

TEST_F(InefficienciesTest, NeedlessBarriers) {
  RunKernel(WaitForNobody, 1, 2 * kLanes, 0, square_.data(), row_.data());
  ExpectAlone(kNeedless, "needless barrier");
}

}  // namespace
}  // namespace cuda_on_cpu
