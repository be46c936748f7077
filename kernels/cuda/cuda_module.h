// What the module with the CUDA backend exports. Knows nothing of CUDA: make_backend.cc reads it
// too.
#ifndef HIPPODROME_KERNELS_CUDA_CUDA_MODULE_H_
#define HIPPODROME_KERNELS_CUDA_CUDA_MODULE_H_

#include <span>
#include <string>

namespace hippodrome {

class DeviceYardsticks;
class AllReduce;
class TrainingBackend;

inline constexpr const char* kCudaModule = "libhippodrome_cuda.so";

// What fails gives 0 or null, and the obstacle in one line.
using CountCudaDevicesFunction = int(std::string& obstacle);
inline constexpr const char* kCountCudaDevices = "hippodrome_count_cuda_devices";
using MakeCudaBackendFunction = TrainingBackend*(int device, std::string& obstacle);
inline constexpr const char* kMakeCudaBackend = "hippodrome_make_cuda_backend";
// Of the first device.
using MakeCudaYardsticksFunction = DeviceYardsticks*(std::string& obstacle);
inline constexpr const char* kMakeCudaYardsticks = "hippodrome_make_cuda_yardsticks";
// Of backends that kMakeCudaBackend made.
using MakeCudaAllReduceFunction = AllReduce*(std::span<TrainingBackend* const> backends,
                                             std::string& obstacle);
inline constexpr const char* kMakeCudaAllReduce = "hippodrome_make_cuda_all_reduce";
// What NCCL calls the group of several processes; empty where it fails.
using NewAllReduceIdFunction = std::string(std::string& obstacle);
inline constexpr const char* kNewAllReduceId = "hippodrome_new_all_reduce_id";
using JoinCudaAllReduceFunction = AllReduce*(TrainingBackend& backend, const std::string& id,
                                             int rank, int size, std::string& obstacle);
inline constexpr const char* kJoinCudaAllReduce = "hippodrome_join_cuda_all_reduce";

}  // namespace hippodrome

#endif  // HIPPODROME_KERNELS_CUDA_CUDA_MODULE_H_
