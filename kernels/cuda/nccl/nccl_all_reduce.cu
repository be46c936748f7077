// NCCL, NVIDIA's library of collective operations, is loaded when it is asked for: nothing links to
// it, so that whatever does not train on several devices works without.
#include "kernels/cuda/nccl/nccl_all_reduce.h"

#include <cuda_runtime.h>
#include <dlfcn.h>

#include <cassert>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "kernels/device_error.h"
#if defined(__CUDACC__) && __has_include(<nccl.h>)
#include <nccl.h>
#endif

namespace hippodrome::cuda {
namespace {

// As much of nccl.h as is used, the same in all of NCCL 2, so that builds do without the header.
// Results are 0 for success.
struct NcclCommunicator;
struct NcclId {
  char bytes[128];
};
constexpr int kNcclFloat32 = 7;
constexpr int kNcclSum = 0;

// Where the header is, it has to agree.
#if defined(__CUDACC__) && __has_include(<nccl.h>)
static_assert(NCCL_MAJOR == 2 && ncclSuccess == 0);
static_assert(ncclFloat32 == kNcclFloat32 && ncclSum == kNcclSum);
static_assert(sizeof(ncclResult_t) == sizeof(int) && sizeof(ncclDataType_t) == sizeof(int) &&
              sizeof(ncclRedOp_t) == sizeof(int) && sizeof(ncclComm_t) == sizeof(void*) &&
              sizeof(ncclUniqueId) == sizeof(NcclId));
#endif

struct NcclLibrary {
  const char* (*error_string)(int result);
  // One communicator for each of `count` different devices.
  int (*init_all)(NcclCommunicator** communicators, int count, const int* devices);
  int (*get_id)(NcclId* id);
  // The communicator of one device of `count`, each in a process of its own; waits for the others.
  int (*init_rank)(NcclCommunicator** communicator, int count, NcclId id, int rank);
  int (*destroy)(NcclCommunicator* communicator);
  int (*group_start)();
  int (*group_end)();
  int (*all_reduce)(const void* from, void* to, size_t count, int type, int operation,
                    NcclCommunicator* communicator, cudaStream_t stream);
};

[[noreturn]] void Fail() { throw DeviceError("cuda: load NCCL: " + std::string(dlerror())); }

template <typename Function>
void Find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  if (function == nullptr) Fail();
}

// Throws DeviceError when there is no libnccl.so.2 where the loader looks. The library is never
// closed: it has threads of its own.
NcclLibrary LoadNccl() {
  void* library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) Fail();
  NcclLibrary nccl = {};
  Find(library, "ncclGetErrorString", nccl.error_string);
  Find(library, "ncclCommInitAll", nccl.init_all);
  Find(library, "ncclGetUniqueId", nccl.get_id);
  Find(library, "ncclCommInitRank", nccl.init_rank);
  Find(library, "ncclCommDestroy", nccl.destroy);
  Find(library, "ncclGroupStart", nccl.group_start);
  Find(library, "ncclGroupEnd", nccl.group_end);
  Find(library, "ncclAllReduce", nccl.all_reduce);
  return nccl;
}

void Check(const NcclLibrary& nccl, int result, const char* operation) {
  if (result == 0) return;
  throw DeviceError(std::string("cuda: ") + operation + ": NCCL: " + nccl.error_string(result));
}

constexpr const char* kSum = "sum gradients";

// The stream on which a device sums, beside its own.
class SumStream {
 public:
  // Binds the calling thread to the device.
  explicit SumStream(Device& device) : device_(device) {
    device.BindThread();
    device.Note(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), kSum);
    device.Note(cudaEventCreateWithFlags(&computed_, cudaEventDisableTiming), kSum);
    device.Note(cudaEventCreateWithFlags(&summed_, cudaEventDisableTiming), kSum);
  }
  ~SumStream() {
    cudaStreamSynchronize(stream_);
    cudaStreamDestroy(stream_);
    cudaEventDestroy(computed_);
    cudaEventDestroy(summed_);
  }
  SumStream(const SumStream&) = delete;
  SumStream& operator=(const SumStream&) = delete;

  cudaStream_t get() const { return stream_; }
  // What comes next sums what the device was given so far.
  void Follow() { Wait(device_.stream(), computed_, stream_); }
  // What the device is given next sees the sums.
  void Lead() { Wait(stream_, summed_, device_.stream()); }

 private:
  void Wait(cudaStream_t before, cudaEvent_t event, cudaStream_t after) {
    device_.Note(cudaEventRecord(event, before), kSum);
    device_.Note(cudaStreamWaitEvent(after, event, 0), kSum);
  }

  Device& device_;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t computed_ = nullptr;
  cudaEvent_t summed_ = nullptr;
};

class NcclAllReduce final : public AllReduce {
 public:
  explicit NcclAllReduce(std::span<Device* const> devices)
      : nccl_(LoadNccl()), communicators_(devices.size()) {
    std::vector<int> indices;
    for (const Device* device : devices) indices.push_back(device->index());
    Check(nccl_.init_all(communicators_.data(), static_cast<int>(indices.size()), indices.data()),
          "join devices");
    for (Device* device : devices) streams_.push_back(std::make_unique<SumStream>(*device));
    devices[0]->BindThread();
  }

  NcclAllReduce(Device& device, const std::string& id, int rank, int size)
      : nccl_(LoadNccl()), communicators_(1) {
    NcclId group;
    assert(id.size() == sizeof(group));
    std::memcpy(&group, id.data(), sizeof(group));
    Check(nccl_.init_rank(communicators_.data(), size, group, rank), "join processes");
    streams_.push_back(std::make_unique<SumStream>(device));
  }

  ~NcclAllReduce() override {
    streams_.clear();
    for (NcclCommunicator* communicator : communicators_) nccl_.destroy(communicator);
  }

  // One group is one operation, and one launch.
  void Begin(size_t r, std::span<const Tensor> tensors) override {
    streams_[r]->Follow();
    Check(nccl_.group_start(), kSum);
    int result = 0;
    for (const Tensor& tensor : tensors) {
      if (result == 0) result = SumOne(r, tensor);
    }
    const int ended = nccl_.group_end();
    Check(result != 0 ? result : ended, kSum);
  }

  void Finish(size_t r) override { streams_[r]->Lead(); }

 private:
  int SumOne(size_t r, const Tensor& tensor) {
    assert(tensor.dtype == DType::kF32 && (tensor.rows <= 1 || tensor.stride == tensor.cols));
    const size_t count = static_cast<size_t>(tensor.rows * tensor.cols);
    if (count == 0) return 0;
    return nccl_.all_reduce(tensor.data, tensor.data, count, kNcclFloat32, kNcclSum,
                            communicators_[r], streams_[r]->get());
  }

  void Check(int result, const char* operation) const { cuda::Check(nccl_, result, operation); }

  const NcclLibrary nccl_;
  std::vector<NcclCommunicator*> communicators_;
  std::vector<std::unique_ptr<SumStream>> streams_;
};

}  // namespace

std::unique_ptr<AllReduce> MakeNcclAllReduce(std::span<Device* const> devices) {
  return std::make_unique<NcclAllReduce>(devices);
}

std::string NewNcclId() {
  const NcclLibrary nccl = LoadNccl();
  NcclId id;
  Check(nccl, nccl.get_id(&id), "name a group");
  return {id.bytes, sizeof(id.bytes)};
}

std::unique_ptr<AllReduce> JoinNcclAllReduce(Device& device, const std::string& id, int rank,
                                             int size) {
  return std::make_unique<NcclAllReduce>(device, id, rank, size);
}

}  // namespace hippodrome::cuda
