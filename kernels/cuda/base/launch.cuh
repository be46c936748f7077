// Starts kernels. There is no <<<>>> in kernels/cuda, so that a host compiler reads it too.
#ifndef HIPPODROME_KERNELS_CUDA_BASE_LAUNCH_CUH_
#define HIPPODROME_KERNELS_CUDA_BASE_LAUNCH_CUH_

#include <cuda_runtime.h>

#include "kernels/cuda/base/device.h"

namespace hippodrome::cuda {

// The contract of one launch.
struct Grid {
  dim3 blocks;
  dim3 threads;
  size_t shared_bytes = 0;  // dynamic, per block; at most Device::shared_bytes()
  // Blocks may start while the kernels before end: every thread of the kernel calls
  // WaitForPrerequisites(), and touches device memory after that alone.
  bool dependent = false;
};

// Runs kernel(arguments...) on the device's stream and notes a failure under the name of
// `operation` ("h3_step").
template <typename... Parameters, typename... Arguments>
void Launch(Device& device, const char* operation, void (*kernel)(Parameters...), const Grid& grid,
            Arguments... arguments) {
#ifdef __CUDACC__
  if (grid.shared_bytes > (48 << 10)) {
    device.Note(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     static_cast<int>(grid.shared_bytes)),
                operation);
  }
  cudaLaunchConfig_t config = {};
  config.gridDim = grid.blocks;
  config.blockDim = grid.threads;
  config.dynamicSmemBytes = grid.shared_bytes;
  config.stream = device.stream();
  cudaLaunchAttribute dependent = {};
  dependent.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  dependent.val.programmaticStreamSerializationAllowed = 1;
  config.attrs = &dependent;
  config.numAttrs = grid.dependent && device.starts_dependents_early() ? 1 : 0;
  device.Note(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...),
              operation);
#else
  device.Note(cuda_on_cpu::LaunchKernel(device.stream(), operation, kernel, grid.blocks,
                                        grid.threads, grid.shared_bytes, grid.dependent,
                                        static_cast<Parameters>(arguments)...),
              operation);
#endif
}

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_BASE_LAUNCH_CUH_
