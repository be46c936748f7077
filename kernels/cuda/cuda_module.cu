#include "kernels/cuda/cuda_module.h"

#include <vector>

#include "kernels/cuda/bench/yardsticks.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/nccl/nccl_all_reduce.h"

#define HIPPODROME_EXPORT extern "C" __attribute__((visibility("default")))

namespace hippodrome {
namespace {

// What `make` gives, or nothing and the obstacle: exceptions stay inside.
template <typename Make>
auto Try(std::string& obstacle, const Make& make) -> decltype(make()) {
  try {
    return make();
  } catch (const std::exception& error) {
    obstacle = error.what();
    return {};
  }
}

}  // namespace
}  // namespace hippodrome

HIPPODROME_EXPORT int hippodrome_count_cuda_devices(std::string& obstacle) {
  return hippodrome::Try(obstacle, [] { return hippodrome::cuda::CountDevices(); });
}

HIPPODROME_EXPORT hippodrome::TrainingBackend* hippodrome_make_cuda_backend(int device,
                                                                            std::string& obstacle) {
  return hippodrome::Try(obstacle, [=] { return new hippodrome::CudaBackend(device); });
}

HIPPODROME_EXPORT hippodrome::DeviceYardsticks* hippodrome_make_cuda_yardsticks(
    std::string& obstacle) {
  return hippodrome::Try(obstacle, [] { return hippodrome::cuda::MakeYardsticks().release(); });
}

HIPPODROME_EXPORT hippodrome::AllReduce* hippodrome_make_cuda_all_reduce(
    std::span<hippodrome::TrainingBackend* const> backends, std::string& obstacle) {
  return hippodrome::Try(obstacle, [=] {
    std::vector<hippodrome::cuda::Device*> devices;
    for (hippodrome::TrainingBackend* backend : backends) {
      devices.push_back(&static_cast<hippodrome::CudaBackend*>(backend)->device());
    }
    return hippodrome::cuda::MakeNcclAllReduce(devices).release();
  });
}

HIPPODROME_EXPORT std::string hippodrome_new_all_reduce_id(std::string& obstacle) {
  return hippodrome::Try(obstacle, [] { return hippodrome::cuda::NewNcclId(); });
}

HIPPODROME_EXPORT hippodrome::AllReduce* hippodrome_join_cuda_all_reduce(
    hippodrome::TrainingBackend& backend, const std::string& id, int rank, int size,
    std::string& obstacle) {
  return hippodrome::Try(obstacle, [&] {
    hippodrome::cuda::Device& device = static_cast<hippodrome::CudaBackend&>(backend).device();
    return hippodrome::cuda::JoinNcclAllReduce(device, id, rank, size).release();
  });
}
