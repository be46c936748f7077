#include "kernels/cuda/base/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "kernels/cuda/base/launch.cuh"

namespace hippodrome::cuda::device_test {
namespace {

using ::testing::HasSubstr;

std::vector<float> ToHost(Device& device, const void* memory, size_t size) {
  std::vector<float> values(size, -1.0f);
  device.Note(cudaMemcpyAsync(values.data(), memory, size * sizeof(float), cudaMemcpyDeviceToHost,
                              device.stream()),
              "copy to host");
  device.Finish("copy to host");
  return values;
}

template <typename Call>
std::string ErrorOf(const Call& call) {
  try {
    call();
  } catch (const DeviceError& error) {
    return error.what();
  }
  return "none";
}

TEST(DeviceTest, KnowsItsLimits) {
  const Device device;
  EXPECT_GE(device.multiprocessors(), 1);
  EXPECT_GE(device.shared_bytes(), size_t{48} << 10);
  EXPECT_NE(device.stream(), nullptr);
}

TEST(DeviceTest, RefusesADeviceThatIsNotThere) {
  EXPECT_THAT(ErrorOf([] { Device device(1000); }),
              HasSubstr("cuda: no device: number 1000 was asked for"));
  EXPECT_THAT(ErrorOf([] { Device device(-1); }), HasSubstr("cuda: no device: number -1"));
}

TEST(DeviceTest, MemoryIsZeroed) {
  Device device;
  const std::shared_ptr<void> memory = AllocateZeroed(device, 1000 * sizeof(float));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.get()) % 256, 0u);
  EXPECT_EQ(ToHost(device, memory.get(), 1000), std::vector<float>(1000, 0.0f));
  EXPECT_EQ(AllocateZeroed(device, 0), nullptr);
}

TEST(DeviceTest, MemoryIsGivenBackOnAnyThread) {
  const size_t before = cuda_on_cpu::DeviceBytes();
  {
    Device device;
    std::shared_ptr<void> memory = AllocateZeroed(device, 100);
    device.Scratch(ScratchUse::kMatmul, 100);
    EXPECT_EQ(cuda_on_cpu::DeviceBytes(), before + 200);
    std::thread([&] { memory.reset(); }).join();
    EXPECT_EQ(cuda_on_cpu::DeviceBytes(), before + 100);
  }
  EXPECT_EQ(cuda_on_cpu::DeviceBytes(), before);
}

TEST(DeviceTest, TooMuchMemoryIsAnErrorOnce) {
  Device device;
  EXPECT_EQ(ErrorOf([&] { AllocateZeroed(device, size_t{1} << 50); }),
            "cuda: allocate: no 1125899906842624 bytes of device memory");
  EXPECT_NE(AllocateZeroed(device, 4), nullptr);
  device.Finish("test");
}

TEST(DeviceTest, HostMemoryMayChangeAfterACopy) {
  Device device;
  const std::shared_ptr<void> memory = AllocateZeroed(device, 3 * sizeof(float));
  std::vector<float> values = {1, 2, 3};
  CopyToDevice(device, values.data(), memory.get(), 3 * sizeof(float));
  values = {4, 5, 6};
  EXPECT_EQ(ToHost(device, memory.get(), 3), (std::vector<float>{1, 2, 3}));
}

TEST(DeviceTest, ScratchKeepsItsAddressAndWhatItOutgrew) {
  Device device;
  const size_t before = cuda_on_cpu::DeviceBytes();
  void* const first = device.Scratch(ScratchUse::kMatmul, 100);
  EXPECT_EQ(device.Scratch(ScratchUse::kMatmul, 50), first);
  EXPECT_EQ(device.Scratch(ScratchUse::kMatmul, 100), first);
  EXPECT_NE(device.Scratch(ScratchUse::kSampling, 100), first);
  EXPECT_NE(device.Scratch(ScratchUse::kMatmul, 101), first);
  EXPECT_EQ(cuda_on_cpu::DeviceBytes(), before + 301);
}

TEST(DeviceTest, WhatIsThereIsNotCopiedToScratchAgain) {
  Device device;
  std::vector<float> values = {1, 2, 3};
  const auto copy = [&] {
    return device.CopyToScratch(ScratchUse::kPageTable, values.data(), 3 * sizeof(float));
  };
  const void* const memory = copy();
  EXPECT_EQ(ToHost(device, memory, 3), values);
  const std::vector<float> mark = {7, 8, 9};
  const auto put_mark = [&] {
    CopyToDevice(device, mark.data(), const_cast<void*>(memory), 3 * sizeof(float));
  };
  put_mark();
  EXPECT_EQ(copy(), memory);
  EXPECT_EQ(ToHost(device, memory, 3), mark);
  values[1] = 5;
  copy();
  EXPECT_EQ(ToHost(device, memory, 3), values);
  put_mark();
  device.Note(cudaErrorIllegalAddress, "copy");
  EXPECT_NE(ErrorOf([&] { device.Finish("wait"); }), "none");
  copy();
  EXPECT_EQ(ToHost(device, memory, 3), values) << "after a failure nothing is known";
}

__global__ void Nothing() {}

TEST(DeviceTest, FinishThrowsTheFirstFailureOnce) {
  Device device;
  Launch(device, "first", Nothing, {1, 2048, 0});
  Launch(device, "second", Nothing, {0, 32, 0});
  Launch(device, "third", Nothing, {1, 32, 0});
  EXPECT_EQ(ErrorOf([&] { device.Finish("wait"); }), "cuda: first: invalid configuration argument");
  EXPECT_EQ(ErrorOf([&] { device.Finish("wait"); }), "none");
  device.Note(cudaErrorIllegalAddress, "copy");
  EXPECT_EQ(ErrorOf([&] { device.Finish("wait"); }),
            "cuda: copy: an illegal memory access was encountered");
}

}  // namespace
}  // namespace hippodrome::cuda::device_test
