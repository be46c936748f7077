#include "kernels/cuda/nccl/nccl_library.h"

#include <dlfcn.h>

#include <string>

#include "kernels/device_error.h"

// Where the header is, it has to agree.
#if defined(__CUDACC__) && __has_include(<nccl.h>)
#include <nccl.h>
static_assert(NCCL_MAJOR == 2 && ncclSuccess == 0);
static_assert(ncclFloat32 == hippodrome::cuda::kNcclFloat32);
static_assert(ncclSum == hippodrome::cuda::kNcclSum);
static_assert(sizeof(ncclResult_t) == sizeof(int) && sizeof(ncclDataType_t) == sizeof(int) &&
              sizeof(ncclRedOp_t) == sizeof(int) && sizeof(ncclComm_t) == sizeof(void*));
#endif

namespace hippodrome::cuda {
namespace {

[[noreturn]] void Fail() { throw DeviceError("cuda: load NCCL: " + std::string(dlerror())); }

template <typename Function>
void Find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  if (function == nullptr) Fail();
}

}  // namespace

// The library is never closed: it has threads of its own.
NcclLibrary LoadNccl() {
  void* library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) Fail();
  NcclLibrary nccl = {};
  Find(library, "ncclGetErrorString", nccl.error_string);
  Find(library, "ncclCommInitAll", nccl.init_all);
  Find(library, "ncclCommDestroy", nccl.destroy);
  Find(library, "ncclGroupStart", nccl.group_start);
  Find(library, "ncclGroupEnd", nccl.group_end);
  Find(library, "ncclAllReduce", nccl.all_reduce);
  return nccl;
}

}  // namespace hippodrome::cuda
