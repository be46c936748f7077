#include "kernels/cuda/cuda_module.h"

#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/yardsticks.h"

#define HIPPODROME_EXPORT extern "C" __attribute__((visibility("default")))

HIPPODROME_EXPORT hippodrome::TrainingBackend* hippodrome_make_cuda_backend(std::string& obstacle) {
  try {
    return new hippodrome::CudaBackend();
  } catch (const std::exception& error) {
    obstacle = error.what();
    return nullptr;
  }
}

HIPPODROME_EXPORT hippodrome::DeviceYardsticks* hippodrome_make_cuda_yardsticks(
    std::string& obstacle) {
  try {
    return hippodrome::cuda::MakeYardsticks().release();
  } catch (const std::exception& error) {
    obstacle = error.what();
    return nullptr;
  }
}
