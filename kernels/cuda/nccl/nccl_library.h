// NVIDIA's library of collective operations, loaded when it is asked for: nothing links to it, so
// that whatever does not train on several devices works without.
#ifndef HIPPODROME_KERNELS_CUDA_NCCL_NCCL_LIBRARY_H_
#define HIPPODROME_KERNELS_CUDA_NCCL_NCCL_LIBRARY_H_

#include <cuda_runtime.h>

#include <cstddef>

namespace hippodrome::cuda {

// As much of nccl.h as is used, the same in all of NCCL 2, so that builds do without the header.
// Results are 0 for success.
struct NcclCommunicator;
inline constexpr int kNcclFloat32 = 7;
inline constexpr int kNcclSum = 0;

struct NcclLibrary {
  const char* (*error_string)(int result);
  // One communicator for each of `count` different devices.
  int (*init_all)(NcclCommunicator** communicators, int count, const int* devices);
  int (*destroy)(NcclCommunicator* communicator);
  int (*group_start)();
  int (*group_end)();
  int (*all_reduce)(const void* from, void* to, size_t count, int type, int operation,
                    NcclCommunicator* communicator, cudaStream_t stream);
};

// Throws DeviceError when there is no libnccl.so.2 where the loader looks.
NcclLibrary LoadNccl();

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_NCCL_NCCL_LIBRARY_H_
