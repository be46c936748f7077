// NCCL, NVIDIA's library of collective operations, is loaded when it is asked for: nothing links to
// it, so that whatever does not train on several devices works without.
#include "kernels/cuda/nccl/nccl_all_reduce.h"

#include <cuda_runtime.h>
#include <dlfcn.h>

#include <cassert>
#include <cstddef>
#include <cstring>
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

class NcclAllReduce final : public AllReduce {
 public:
  explicit NcclAllReduce(std::span<Device* const> devices)
      : nccl_(LoadNccl()),
        devices_(devices.begin(), devices.end()),
        communicators_(devices.size()) {
    std::vector<int> indices;
    for (const Device* device : devices) indices.push_back(device->index());
    Check(nccl_.init_all(communicators_.data(), static_cast<int>(indices.size()), indices.data()),
          "join devices");
  }

  NcclAllReduce(Device& device, const std::string& id, int rank, int size)
      : nccl_(LoadNccl()), devices_(1, &device), communicators_(1) {
    NcclId group;
    assert(id.size() == sizeof(group));
    std::memcpy(&group, id.data(), sizeof(group));
    Check(nccl_.init_rank(communicators_.data(), size, group, rank), "join processes");
  }

  ~NcclAllReduce() override {
    for (NcclCommunicator* communicator : communicators_) nccl_.destroy(communicator);
  }

  // One group is one operation: no device waits for another before all have been told.
  void Sum(std::span<const std::vector<Tensor>> tensors) override {
    assert(tensors.size() == devices_.size());
    Check(nccl_.group_start(), kSum);
    int result = 0;
    for (size_t r = 0; r < tensors.size(); ++r) {
      for (const Tensor& tensor : tensors[r]) {
        if (result == 0) result = SumOne(r, tensor);
      }
    }
    const int ended = nccl_.group_end();
    Check(result != 0 ? result : ended, kSum);
  }

 private:
  static constexpr const char* kSum = "sum gradients";

  int SumOne(size_t r, const Tensor& tensor) {
    assert(tensor.dtype == DType::kF32 && (tensor.rows <= 1 || tensor.stride == tensor.cols));
    const size_t count = static_cast<size_t>(tensor.rows * tensor.cols);
    if (count == 0) return 0;
    return nccl_.all_reduce(tensor.data, tensor.data, count, kNcclFloat32, kNcclSum,
                            communicators_[r], devices_[r]->stream());
  }

  void Check(int result, const char* operation) const { cuda::Check(nccl_, result, operation); }

  const NcclLibrary nccl_;
  const std::vector<Device*> devices_;
  std::vector<NcclCommunicator*> communicators_;
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
