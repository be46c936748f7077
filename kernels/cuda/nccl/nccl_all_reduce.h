// Sums over devices.
#ifndef HIPPODROME_KERNELS_CUDA_NCCL_NCCL_ALL_REDUCE_H_
#define HIPPODROME_KERNELS_CUDA_NCCL_NCCL_ALL_REDUCE_H_

#include <memory>
#include <span>

#include "kernels/all_reduce.h"
#include "kernels/cuda/base/device.h"

namespace hippodrome::cuda {

// Of tensors in the memory of `devices`, by NCCL, on each device's stream and without waiting.
// REQUIRES: at least one device, each with an index of its own. Throws DeviceError when there is no
// NCCL or it fails.
std::unique_ptr<AllReduce> MakeNcclAllReduce(std::span<Device* const> devices);

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_NCCL_NCCL_ALL_REDUCE_H_
