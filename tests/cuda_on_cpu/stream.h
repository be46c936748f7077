// Streams do what they are given at once, or capture it.
#ifndef HIPPODROME_TESTS_CUDA_ON_CPU_STREAM_H_
#define HIPPODROME_TESTS_CUDA_ON_CPU_STREAM_H_

#include <functional>
#include <string>

#include "tests/cuda_on_cpu/include/cuda_on_cpu/runtime_api.h"

namespace cuda_on_cpu {

cudaError_t Submit(cudaStream_t stream, std::function<void()> work);

// Of the calling thread.
int CurrentDevice();

// Whether the stream is of the calling thread's device; the default stream is of every one.
bool IsHere(cudaStream_t stream);

// Remembers a failure for cudaGetLastError().
cudaError_t Noted(cudaError_t error);

// For calls that are not allowed while a stream is captured: an error then, and the capture is
// spoilt.
cudaError_t RefuseWhileCapturing();

// While one lives, this thread works for the device. Otherwise nobody touches device memory, which
// AddressSanitizer checks.
class DeviceAccess {
 public:
  DeviceAccess();
  ~DeviceAccess();
  DeviceAccess(const DeviceAccess&) = delete;
  DeviceAccess& operator=(const DeviceAccess&) = delete;
};

// Before a kernel, for LastPrefetches(), and behind it: throws std::logic_error where it asked for
// anything but device memory. REQUIRES: a DeviceAccess.
void ForgetPrefetches();
void CheckPrefetches(const std::string& operation);

}  // namespace cuda_on_cpu

#endif  // HIPPODROME_TESTS_CUDA_ON_CPU_STREAM_H_
