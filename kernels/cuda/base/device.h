// One device as a backend uses it: its stream, its scratch memory, and the first thing that failed.
#ifndef HIPPODROME_KERNELS_CUDA_BASE_DEVICE_H_
#define HIPPODROME_KERNELS_CUDA_BASE_DEVICE_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kernels/device_error.h"
#include "kernels/tensor.h"

namespace hippodrome::cuda {

// What a piece of scratch memory is for: uses that are live at the same time have names of their
// own.
enum class ScratchUse : uint8_t {
  kAttentionParts,
  kAttentionRows,
  kColumnSums,
  kH3Rows,
  kLinearAttention,
  kLinearGradient,
  kLinearInputs,
  kLinearNarrowed,
  kLinearTransposed,
  kLogits,
  kMatmul,
  kMatmulSums,
  kNormStatistics,
  kPageTable,
  kQuantizedInputs,
  kSampling,
  kSequenceParts,
  kKernelGradients,
  kSquares,
  kStateExchange
};

// What the product behind a kernel reads, of which each block of that kernel asks L2 for a share
// (PrefetchShare()): from a border of 16 bytes on, whole ones.
struct ReadAhead {
  const char* first = nullptr;
  int bytes = 0;
  int share = 0;
};

// How many can be used. Throws DeviceError, with the reason, when there is none.
int CountDevices();

// All work goes to one stream, in order. Not thread-safe.
class Device {
 public:
  // The calling thread is bound to it. Throws DeviceError when device `index` cannot be used.
  explicit Device(int index = 0);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  int index() const { return index_; }
  cudaStream_t stream() const { return stream_; }
  int multiprocessors() const { return multiprocessors_; }
  // Work is given by threads that are bound to the device; new ones are to device 0.
  void BindThread() { Note(cudaSetDevice(index_), "select device"); }
  // Dynamic shared memory that a block may ask for.
  size_t shared_bytes() const { return shared_bytes_; }
  // Whether it has programmatic dependent launch.
  bool starts_dependents_early() const { return starts_dependents_early_; }

  // Says what the product behind the next kernel reads, or that nothing is known of it. No more
  // than 24 MB is asked for: half of L2, and about what DRAM gives until that product begins.
  void Expect(const void* first, int64_t bytes);
  void ExpectNothing() { expected_ = {}; }
  // What a kernel of `blocks` blocks is to ask for; afterwards nothing is expected.
  ReadAhead TakeExpected(int64_t blocks);

  // Device memory of at least `bytes`, not cleared, valid until the next call for the same use. It
  // keeps its address while it is large enough, and what a captured step may still read is never
  // given back before the device.
  void* Scratch(ScratchUse use, size_t bytes);
  // The same, with a copy of host memory, which may change after the call. What is there already is
  // not copied again: layer after layer asks for the same. REQUIRES: nothing else writes there, and
  // no step is captured.
  const void* CopyToScratch(ScratchUse use, const void* from, size_t bytes);

  // Remembers the first failure, with the operation that was under way.
  void Note(cudaError_t error, const char* operation);
  // Waits for the stream. Throws DeviceError, "cuda: OPERATION: what happened", if anything failed
  // since the last call; kernels fail late, so the operation is the first one known to be after the
  // cause.
  void Finish(const char* operation);

 private:
  struct Block {
    std::shared_ptr<void> memory;
    size_t bytes = 0;
    std::vector<std::byte> copied;  // what CopyToScratch() left there
  };
  cudaStream_t stream_ = nullptr;
  int multiprocessors_ = 0;
  int index_ = 0;
  size_t shared_bytes_ = 0;
  bool starts_dependents_early_ = false;
  ReadAhead expected_;
  std::string failure_;
  std::map<ScratchUse, Block> scratch_;
  std::vector<std::shared_ptr<void>> outgrown_;
};

// Zeroed device memory; throws DeviceError when there is not enough. The memory is given back when
// the last owner goes, which may be on any thread.
std::shared_ptr<void> AllocateZeroed(Device& device, size_t bytes);

// Copies `bytes` from host memory, which may change after the call.
void CopyToDevice(Device& device, const void* from, void* to, size_t bytes);
// They are there after Device::Finish().
void CopyToHost(Device& device, const void* from, void* to, size_t bytes, const char* operation);
void CopyOnDevice(Device& device, const void* from, void* to, size_t bytes, const char* operation);

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_BASE_DEVICE_H_
