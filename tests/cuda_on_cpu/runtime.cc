// Errors and the devices, all alike.
#include <atomic>
#include <utility>

#include "tests/cuda_on_cpu/stream.h"

namespace {

thread_local cudaError_t last_error = cudaSuccess;
std::atomic<int> device_count = 1;
thread_local int current_device = 0;

bool IsDevice(int device) { return device >= 0 && device < device_count; }

struct ErrorText {
  cudaError_t error;
  const char* name;
  const char* text;
};
constexpr ErrorText kErrors[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInitializationError, "cudaErrorInitializationError", "initialization error"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration",
     "invalid configuration argument"},
    {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
     "CUDA driver version is insufficient for CUDA runtime version"},
    {cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress",
     "an illegal memory access was encountered"},
    {cudaErrorLaunchOutOfResources, "cudaErrorLaunchOutOfResources",
     "too many resources requested for launch"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {cudaErrorIllegalState, "cudaErrorIllegalState",
     "the operation cannot be performed in the present state"},
};

const ErrorText& TextOf(cudaError_t error) {
  static constexpr ErrorText kUnknown = {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"};
  for (const ErrorText& text : kErrors) {
    if (text.error == error) return text;
  }
  return kUnknown;
}

constexpr cudaDeviceProp kDevice = {
    .name = "CUDA on CPU",
    .totalGlobalMem = size_t{4} << 30,
    .sharedMemPerBlock = size_t{48} << 10,
    .sharedMemPerBlockOptin = size_t{227} << 10,
    .sharedMemPerMultiprocessor = size_t{228} << 10,
    .regsPerBlock = 65536,
    .warpSize = 32,
    .maxThreadsPerBlock = 1024,
    .major = 9,
    .minor = 0,
    .multiProcessorCount = 132,
    .l2CacheSize = 50 << 20,
};

int Attribute(cudaDeviceAttr attribute) {
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
      return kDevice.maxThreadsPerBlock;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      return static_cast<int>(kDevice.sharedMemPerBlock);
    case cudaDevAttrWarpSize:
      return kDevice.warpSize;
    case cudaDevAttrMultiProcessorCount:
      return kDevice.multiProcessorCount;
    case cudaDevAttrComputeCapabilityMajor:
      return kDevice.major;
    case cudaDevAttrComputeCapabilityMinor:
      return kDevice.minor;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      return static_cast<int>(kDevice.sharedMemPerMultiprocessor);
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      return static_cast<int>(kDevice.sharedMemPerBlockOptin);
  }
  return 0;
}

}  // namespace

namespace cuda_on_cpu {

cudaError_t Noted(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

void SetDeviceCount(int count) { device_count = count; }

int CurrentDevice() { return current_device; }

}  // namespace cuda_on_cpu

using cuda_on_cpu::Noted;

const char* cudaGetErrorName(cudaError_t error) { return TextOf(error).name; }
const char* cudaGetErrorString(cudaError_t error) { return TextOf(error).text; }
cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }
cudaError_t cudaPeekAtLastError() { return last_error; }

cudaError_t cudaGetDeviceCount(int* count) {
  *count = device_count;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  *device = current_device;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (!IsDevice(device)) return Noted(cudaErrorInvalidDevice);
  current_device = device;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (!IsDevice(device)) return Noted(cudaErrorInvalidDevice);
  *properties = kDevice;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (!IsDevice(device)) return Noted(cudaErrorInvalidDevice);
  *value = Attribute(attribute);
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() { return cuda_on_cpu::RefuseWhileCapturing(); }
