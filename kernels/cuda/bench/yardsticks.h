// The yardsticks of an NVIDIA device.
#ifndef HIPPODROME_KERNELS_CUDA_BENCH_YARDSTICKS_H_
#define HIPPODROME_KERNELS_CUDA_BENCH_YARDSTICKS_H_

#include <memory>

#include "kernels/device_yardsticks.h"

namespace hippodrome::cuda {

// Throws DeviceError when there is no device that can be used.
std::unique_ptr<DeviceYardsticks> MakeYardsticks();

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_BENCH_YARDSTICKS_H_
