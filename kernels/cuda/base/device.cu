#include "kernels/cuda/base/device.h"

#include <algorithm>
#include <bit>
#include <span>
#include <utility>

namespace hippodrome::cuda {
namespace {

std::string Message(const char* operation, cudaError_t error) {
  return std::string("cuda: ") + operation + ": " + cudaGetErrorString(error);
}

void ThrowIfFailed(cudaError_t error, const char* operation) {
  if (error != cudaSuccess) throw DeviceError(Message(operation, error));
}

void CheckIndex(int index) {
  const int devices = CountDevices();
  if (index >= 0 && index < devices) return;
  throw DeviceError("cuda: no device: number " + std::to_string(index) + " was asked for, and " +
                    std::to_string(devices) + " can be used, from 0 on");
}

int Attribute(cudaDeviceAttr attribute, int index) {
  int value = 0;
  ThrowIfFailed(cudaDeviceGetAttribute(&value, attribute, index), "query device");
  return value;
}

// Uninitialised device memory.
std::shared_ptr<void> Allocate(size_t bytes) {
  void* memory = nullptr;
  const cudaError_t error = cudaMalloc(&memory, bytes);
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // It spoils nothing: later calls work.
    throw DeviceError("cuda: allocate: no " + std::to_string(bytes) + " bytes of device memory");
  }
  ThrowIfFailed(error, "allocate");
  return {memory, [](void* p) { cudaFree(p); }};
}

}  // namespace

// An old driver or none at all, and a driver without a device, are found by the first call.
int CountDevices() {
  int devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  if (error == cudaErrorInsufficientDriver) {
    throw DeviceError(
        "cuda: no device: the NVIDIA driver is missing, or too old for the CUDA runtime of this "
        "build");
  }
  if (error == cudaErrorNoDevice || (error == cudaSuccess && devices == 0)) {
    throw DeviceError("cuda: no device: the NVIDIA driver finds no GPU that it may use");
  }
  ThrowIfFailed(error, "count devices");
  return devices;
}

Device::Device(int index) : index_(index) {
  CheckIndex(index);
  ThrowIfFailed(cudaSetDevice(index), "select device");
  multiprocessors_ = Attribute(cudaDevAttrMultiProcessorCount, index);
  shared_bytes_ = static_cast<size_t>(Attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, index));
  starts_dependents_early_ = Attribute(cudaDevAttrComputeCapabilityMajor, index) >= 9;
  ThrowIfFailed(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "create stream");
}

// What is under way may use the scratch memory.
Device::~Device() {
  cudaStreamSynchronize(stream_);
  cudaStreamDestroy(stream_);
}

void* Device::Scratch(ScratchUse use, size_t bytes) {
  Block& block = scratch_[use];
  if (bytes > block.bytes) {
    std::shared_ptr<void> memory = Allocate(bytes);
    if (block.memory != nullptr) outgrown_.push_back(std::move(block.memory));
    block = {std::move(memory), bytes, {}};
  }
  return block.memory.get();
}

const void* Device::CopyToScratch(ScratchUse use, const void* from, size_t bytes) {
  // Powers of two, so that the memory is seldom outgrown.
  void* const memory = Scratch(use, std::bit_ceil(bytes));
  const std::span values(static_cast<const std::byte*>(from), bytes);
  std::vector<std::byte>& copied = scratch_[use].copied;
  if (!std::ranges::equal(values, copied)) {
    copied.assign(values.begin(), values.end());
    CopyToDevice(*this, from, memory, bytes);
  }
  return memory;
}

void Device::Expect(const void* first, int64_t bytes) {
  constexpr int64_t kMost = 24 << 20;
  expected_ = {static_cast<const char*>(first), static_cast<int>(std::min(bytes, kMost) / 16 * 16)};
}

ReadAhead Device::TakeExpected(int64_t blocks) {
  ReadAhead ahead = std::exchange(expected_, {});
  ahead.share = static_cast<int>((ahead.bytes / 16 + blocks - 1) / blocks * 16);
  return ahead;
}

void Device::Note(cudaError_t error, const char* operation) {
  if (error == cudaSuccess) return;
  if (failure_.empty()) failure_ = Message(operation, error);
  for (auto& [use, block] : scratch_) block.copied.clear();  // nobody knows what is there
}

void Device::Finish(const char* operation) {
  Note(cudaStreamSynchronize(stream_), operation);
  if (failure_.empty()) return;
  cudaGetLastError();
  throw DeviceError(std::exchange(failure_, {}));
}

std::shared_ptr<void> AllocateZeroed(Device& device, size_t bytes) {
  if (bytes == 0) return nullptr;
  std::shared_ptr<void> memory = Allocate(bytes);
  ThrowIfFailed(cudaMemsetAsync(memory.get(), 0, bytes, device.stream()), "clear memory");
  return memory;
}

// From pageable memory the runtime copies `from` aside, or waits, before it returns.
void CopyToDevice(Device& device, const void* from, void* to, size_t bytes) {
  device.Note(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, device.stream()),
              "copy to device");
}

void CopyToHost(Device& device, const void* from, void* to, size_t bytes, const char* operation) {
  device.Note(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, device.stream()), operation);
}

void CopyOnDevice(Device& device, const void* from, void* to, size_t bytes, const char* operation) {
  device.Note(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, device.stream()),
              operation);
}

}  // namespace hippodrome::cuda
