// Device memory is memory of the host that no library function mistakes for it: copies check on
// which side their ends are.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/cuda_on_cpu/include/cuda_on_cpu/emulator.h"
#include "tests/cuda_on_cpu/runtime_watch.h"
#include "tests/cuda_on_cpu/sanitizers.h"
#include "tests/cuda_on_cpu/stream.h"
#include "tests/cuda_on_cpu/trace.h"

namespace cuda_on_cpu {
namespace {

constexpr size_t kDeviceBytes = size_t{4} << 30;
constexpr size_t kAlignment = 256;

std::mutex mutex;  // guards what follows
std::map<uintptr_t, size_t> allocations;
size_t allocated = 0;
int64_t allocation_count = 0;

std::mutex device;  // held by whoever works for the device; guards what follows

// Of the last kernel, those beyond left out. A plain array: whatever orders the threads of a kernel
// would hide its races.
constexpr size_t kMostPrefetches = 1 << 16;
Prefetched prefetches[kMostPrefetches];
size_t prefetch_count = 0;

// REQUIRES: the device is held.
void ForbidMemory(bool forbidden) {
  const std::lock_guard lock(mutex);
  for (const auto& [begin, size] : allocations) {
    SetForbidden(reinterpret_cast<void*>(begin), size, forbidden);
  }
}

enum class Side { kHost, kDevice, kNeither };

// Where [memory, memory + bytes) is.
Side SideOf(const void* memory, size_t bytes) {
  const std::lock_guard lock(mutex);
  const auto address = reinterpret_cast<uintptr_t>(memory);
  auto next = allocations.upper_bound(address);
  if (next != allocations.end() && address + bytes > next->first) return Side::kNeither;
  if (next == allocations.begin()) return Side::kHost;
  const auto& [begin, size] = *--next;
  if (address >= begin + size) return Side::kHost;
  return address + bytes <= begin + size ? Side::kDevice : Side::kNeither;
}

struct Copy {
  char* to;
  size_t to_pitch;
  const char* from;
  size_t from_pitch;
  size_t width;
  size_t height;
  cudaMemcpyKind kind;
};

bool IsAllowed(const Copy& copy) {
  const Side to = SideOf(copy.to, (copy.height - 1) * copy.to_pitch + copy.width);
  const Side from = SideOf(copy.from, (copy.height - 1) * copy.from_pitch + copy.width);
  if (to == Side::kNeither || from == Side::kNeither) return false;
  if (copy.kind == cudaMemcpyDefault) return true;
  const bool to_device =
      copy.kind == cudaMemcpyHostToDevice || copy.kind == cudaMemcpyDeviceToDevice;
  const bool from_device =
      copy.kind == cudaMemcpyDeviceToHost || copy.kind == cudaMemcpyDeviceToDevice;
  return (to == Side::kDevice) == to_device && (from == Side::kDevice) == from_device;
}

cudaError_t SubmitCopy(const Copy& copy, cudaStream_t stream) {
  if (copy.width == 0 || copy.height == 0) return cudaSuccess;
  if (copy.width > copy.to_pitch || copy.width > copy.from_pitch || !IsAllowed(copy)) {
    return Noted(cudaErrorInvalidValue);
  }
  return Submit(stream, [copy] {
    for (size_t row = 0; row < copy.height; ++row) {
      std::memmove(copy.to + row * copy.to_pitch, copy.from + row * copy.from_pitch, copy.width);
    }
  });
}

Copy Flat(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return {static_cast<char*>(to), bytes, static_cast<const char*>(from), bytes, bytes, 1, kind};
}

}  // namespace

DeviceAccess::DeviceAccess() {
  device.lock();
  ForbidMemory(false);
}

DeviceAccess::~DeviceAccess() {
  ForbidMemory(true);
  device.unlock();
}

UNTRACED void PrefetchToL2(const void* from, int64_t bytes) {
  if (prefetch_count < kMostPrefetches) prefetches[prefetch_count++] = {from, bytes};
}

void ForgetPrefetches() { prefetch_count = 0; }

void CheckPrefetches(const std::string& operation) {
  for (const auto& [from, bytes] : std::span(prefetches, prefetch_count)) {
    const bool whole = reinterpret_cast<uintptr_t>(from) % 16 == 0 && bytes % 16 == 0;
    if (whole && bytes > 0 && SideOf(from, static_cast<size_t>(bytes)) == Side::kDevice) continue;
    throw std::logic_error(operation +
                           ": asks L2 for what is not whole pieces of 16 bytes of device memory");
  }
}

std::vector<Prefetched> LastPrefetches() {
  const DeviceAccess access;
  const auto begin = [](const Prefetched& piece) {
    return reinterpret_cast<uintptr_t>(piece.first);
  };
  std::vector<Prefetched> pieces(prefetches, prefetches + prefetch_count);
  std::ranges::sort(pieces, {}, begin);
  std::vector<Prefetched> joined;
  for (const Prefetched& piece : pieces) {
    if (joined.empty() || begin(joined.back()) + joined.back().bytes != begin(piece)) {
      joined.push_back(piece);
    } else {
      joined.back().bytes += piece.bytes;
    }
  }
  return joined;
}

int64_t AllocationCount() {
  const std::lock_guard lock(mutex);
  return allocation_count;
}

#ifdef CUDA_ON_CPU_COUNT
void VisitAllocations(void (*visit)(uintptr_t begin, size_t bytes)) {
  const std::lock_guard lock(mutex);
  for (const auto& [begin, bytes] : allocations) visit(begin, bytes);
}
#endif

size_t DeviceBytes() {
  const std::lock_guard lock(mutex);
  return allocated;
}

}  // namespace cuda_on_cpu

using cuda_on_cpu::allocated;
using cuda_on_cpu::allocation_count;
using cuda_on_cpu::allocations;
using cuda_on_cpu::Noted;
using cuda_on_cpu::RefuseWhileCapturing;

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  *memory = nullptr;
  if (const cudaError_t error = RefuseWhileCapturing(); error != cudaSuccess) return error;
  if (bytes == 0) return cudaSuccess;
  const std::lock_guard lock(cuda_on_cpu::mutex);
  if (bytes > cuda_on_cpu::kDeviceBytes - allocated ||
      posix_memalign(memory, cuda_on_cpu::kAlignment, bytes) != 0) {
    return Noted(cudaErrorMemoryAllocation);
  }
  // Not a number, so that what nobody wrote is seen.
  std::memset(*memory, 0xff, bytes);
  allocations[reinterpret_cast<uintptr_t>(*memory)] = bytes;
  allocated += bytes;
  ++allocation_count;
  cuda_on_cpu::SetForbidden(*memory, bytes, true);
  return cudaSuccess;
}

cudaError_t cudaFree(void* memory) {
  if (const cudaError_t error = RefuseWhileCapturing(); error != cudaSuccess) return error;
  if (memory == nullptr) return cudaSuccess;
  const std::lock_guard lock(cuda_on_cpu::mutex);
  const auto allocation = allocations.find(reinterpret_cast<uintptr_t>(memory));
  if (allocation == allocations.end()) return Noted(cudaErrorInvalidValue);
  allocated -= allocation->second;
  cuda_on_cpu::SetForbidden(memory, allocation->second, false);
  allocations.erase(allocation);
  std::free(memory);
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *total = cuda_on_cpu::kDeviceBytes;
  *free = *total - cuda_on_cpu::DeviceBytes();
  return cudaSuccess;
}

cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned) {
  return cudaMallocHost(memory, bytes);
}

cudaError_t cudaMallocHost(void** memory, size_t bytes) {
  *memory = nullptr;
  if (const cudaError_t error = RefuseWhileCapturing(); error != cudaSuccess) return error;
  return posix_memalign(memory, cuda_on_cpu::kAlignment, bytes) == 0
             ? cudaSuccess
             : Noted(cudaErrorMemoryAllocation);
}

cudaError_t cudaFreeHost(void* memory) {
  if (const cudaError_t error = RefuseWhileCapturing(); error != cudaSuccess) return error;
  std::free(memory);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return cuda_on_cpu::SubmitCopy(cuda_on_cpu::Flat(to, from, bytes, kind), stream);
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  if (const cudaError_t error = RefuseWhileCapturing(); error != cudaSuccess) return error;
  return cudaMemcpyAsync(to, from, bytes, kind, nullptr);
}

cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                              size_t width, size_t height, cudaMemcpyKind kind,
                              cudaStream_t stream) {
  return cuda_on_cpu::SubmitCopy({static_cast<char*>(to), to_pitch, static_cast<const char*>(from),
                                  from_pitch, width, height, kind},
                                 stream);
}

cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                         size_t width, size_t height, cudaMemcpyKind kind) {
  if (const cudaError_t error = RefuseWhileCapturing(); error != cudaSuccess) return error;
  return cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, width, height, kind, nullptr);
}

cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t stream) {
  if (bytes == 0) return cudaSuccess;
  if (cuda_on_cpu::SideOf(memory, bytes) != cuda_on_cpu::Side::kDevice) {
    return Noted(cudaErrorInvalidValue);
  }
  return cuda_on_cpu::Submit(stream, [=] { std::memset(memory, value, bytes); });
}

cudaError_t cudaMemset(void* memory, int value, size_t bytes) {
  if (const cudaError_t error = RefuseWhileCapturing(); error != cudaSuccess) return error;
  return cudaMemsetAsync(memory, value, bytes, nullptr);
}
