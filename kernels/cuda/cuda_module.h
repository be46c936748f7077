// What the module with the CUDA backend exports. Knows nothing of CUDA: make_backend.cc reads it
// too.
#ifndef HIPPODROME_KERNELS_CUDA_CUDA_MODULE_H_
#define HIPPODROME_KERNELS_CUDA_CUDA_MODULE_H_

namespace hippodrome {

inline constexpr const char* kCudaModule = "libhippodrome_cuda.so";

// Functions of type T*(std::string& obstacle), T = TrainingBackend and DeviceYardsticks: a new one
// on the first device, or null and the obstacle in one line.
inline constexpr const char* kMakeCudaBackend = "hippodrome_make_cuda_backend";
inline constexpr const char* kMakeCudaYardsticks = "hippodrome_make_cuda_yardsticks";

}  // namespace hippodrome

#endif  // HIPPODROME_KERNELS_CUDA_CUDA_MODULE_H_
