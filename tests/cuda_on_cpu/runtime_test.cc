#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "tests/cuda_on_cpu/device_array.h"
#include "tests/cuda_on_cpu/runtime_watch.h"

namespace cuda_on_cpu {
namespace {

TEST(RuntimeTest, CountsDeviceMemory) {
  const size_t before = DeviceBytes();
  const int64_t allocations = AllocationCount();
  {
    const DeviceArray<char> a(100), b(28);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(a.data()) % 256, 0u);
    EXPECT_EQ(DeviceBytes(), before + 128);
  }
  EXPECT_EQ(DeviceBytes(), before);
  EXPECT_EQ(AllocationCount(), allocations + 2) << "freed or not";
  void* memory = &memory;
  EXPECT_EQ(cudaMalloc(&memory, size_t{1} << 40), cudaErrorMemoryAllocation);
  EXPECT_EQ(memory, nullptr);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(cudaFree(nullptr), cudaSuccess);
  EXPECT_EQ(cudaFree(&memory), cudaErrorInvalidValue);
}

TEST(RuntimeTest, CopiesCheckTheirEnds) {
  const DeviceArray<float> device(4);
  std::vector<float> host(8);
  const auto copy = [](void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
    return cudaMemcpyAsync(to, from, bytes, kind);
  };
  float* d = device.data();
  EXPECT_EQ(copy(d, host.data(), 16, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(copy(d, host.data(), 16, cudaMemcpyDefault), cudaSuccess);
  EXPECT_EQ(copy(host.data(), d + 3, 4, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(copy(d + 3, d, 4, cudaMemcpyDeviceToDevice), cudaSuccess);
  EXPECT_EQ(copy(d, host.data(), 20, cudaMemcpyHostToDevice), cudaErrorInvalidValue) << "too long";
  EXPECT_EQ(copy(d - 1, host.data(), 8, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(copy(host.data(), d, 4, cudaMemcpyHostToDevice), cudaErrorInvalidValue) << "reversed";
  EXPECT_EQ(copy(d, host.data(), 4, cudaMemcpyDeviceToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(copy(host.data() + 4, host.data(), 4, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(host.data(), 0, 4), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(d, 0, 17), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(d, 0, 16), cudaSuccess);
  EXPECT_EQ(device.values(), std::vector<float>(4, 0.0f));
}

TEST(RuntimeTest, CopiesRowsOfMatrices) {
  const DeviceArray<float> device(std::vector<float>(12, -1.0f));
  const std::vector<float> host = {1, 2, 3, 4, 5, 6};
  EXPECT_EQ(cudaMemcpy2D(device.data() + 1, 16, host.data(), 12, 8, 2, cudaMemcpyHostToDevice),
            cudaSuccess);
  EXPECT_EQ(device.values(), (std::vector<float>{-1, 1, 2, -1, -1, 4, 5, -1, -1, -1, -1, -1}));
  EXPECT_EQ(cudaMemcpy2D(device.data(), 4, host.data(), 12, 8, 2, cudaMemcpyHostToDevice),
            cudaErrorInvalidValue)
      << "rows overlap";
}

TEST(RuntimeTest, DescribesItsDevice) {
  int devices = 0;
  EXPECT_EQ(cudaGetDeviceCount(&devices), cudaSuccess);
  EXPECT_EQ(devices, 1);
  EXPECT_EQ(cudaSetDevice(1), cudaErrorInvalidDevice);
  cudaDeviceProp properties;
  EXPECT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
  EXPECT_EQ(properties.major, 9);
  int bytes = 0;
  EXPECT_EQ(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0),
            cudaSuccess);
  EXPECT_EQ(bytes, 227 << 10);
  EXPECT_EQ(std::string(cudaGetErrorString(cudaErrorInvalidValue)), "invalid argument");
}

__global__ void Nothing() {}

TEST(RuntimeTest, AThreadLaunchesOnlyOnItsDevice) {
  SetDeviceCount(2);
  cudaStream_t stream = nullptr;
  EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
  EXPECT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  EXPECT_EQ(LaunchKernel(stream, "nothing", Nothing, 1, 32, 0, false), cudaSuccess);
  std::thread([=] {
    EXPECT_EQ(LaunchKernel(stream, "nothing", Nothing, 1, 32, 0, false),
              cudaErrorInvalidResourceHandle);
    EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
    EXPECT_EQ(LaunchKernel(stream, "nothing", Nothing, 1, 32, 0, false), cudaSuccess);
  }).join();
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
  SetDeviceCount(1);
}

}  // namespace
}  // namespace cuda_on_cpu
