// Sums over devices.
#ifndef HIPPODROME_KERNELS_CUDA_NCCL_NCCL_ALL_REDUCE_H_
#define HIPPODROME_KERNELS_CUDA_NCCL_NCCL_ALL_REDUCE_H_

#include <memory>
#include <span>
#include <string>

#include "kernels/all_reduce.h"
#include "kernels/cuda/base/device.h"

namespace hippodrome::cuda {

// Of tensors in the memory of `devices`, by NCCL, on a stream beside each device's, so that a
// backward goes on while the gradients of its end are summed. REQUIRES: at least one device, each
// with an index of its own. Binds the calling thread to the first. Throws DeviceError when there is
// no NCCL or it fails.
std::unique_ptr<AllReduce> MakeNcclAllReduce(std::span<Device* const> devices);

// The name of a group of processes, for one of them to give to the others. Throws as above.
std::string NewNcclId();
// The same sums over the group `id`, of which this is process `rank` of `size`, by one device of
// each; waits for the others. `device` is 0 of the one that this process has.
std::unique_ptr<AllReduce> JoinNcclAllReduce(Device& device, const std::string& id, int rank,
                                             int size);

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_NCCL_NCCL_ALL_REDUCE_H_
