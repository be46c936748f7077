#include "kernels/make_backend.h"

#include <dlfcn.h>

#include <string>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cuda/cuda_module.h"
#include "kernels/open_module.h"

namespace hippodrome {
namespace {

// Asking for the driver first keeps the toolkit's libraries, half a gigabyte, out of processes that
// could not use them.
bool HasDriver() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver != nullptr) dlclose(driver);
  return driver != nullptr;
}

// The module's function `name`, or null and the obstacle.
template <typename Function>
Function* FindFunction(const char* name, std::string& obstacle) {
  if (!HasDriver()) {
    obstacle = "cuda: no NVIDIA driver (libcuda.so.1) on this machine";
    return nullptr;
  }
  void* module = OpenModule(kCudaModule);
  if (module == nullptr) {
    obstacle = "cuda: no CUDA backend: " + std::string(dlerror());
    return nullptr;
  }
  const auto function = reinterpret_cast<Function*>(dlsym(module, name));
  if (function == nullptr) obstacle = "cuda: " + std::string(dlerror());
  return function;
}

}  // namespace

std::shared_ptr<ThreadPool> MakeThreadPool(const CpuOptions& options) {
  return options.cores.empty() ? std::make_shared<ThreadPool>(options.threads)
                               : std::make_shared<ThreadPool>(options.cores);
}

std::unique_ptr<TrainingBackend> MakeCpuBackend(const CpuOptions& options) {
  return std::make_unique<CpuBackend>(options.pool != nullptr ? options.pool
                                                              : MakeThreadPool(options));
}

ChosenBackend MakeBackend(DeviceChoice device, const CpuOptions& cpu) {
  ChosenBackend chosen;
  if (device != DeviceChoice::kCpu) chosen = MakeCudaBackend(0);
  if (chosen.backend == nullptr && device != DeviceChoice::kCuda) {
    chosen.backend = MakeCpuBackend(cpu);
  }
  return chosen;
}

int CountCudaDevices() {
  std::string obstacle;
  const auto count = FindFunction<CountCudaDevicesFunction>(kCountCudaDevices, obstacle);
  return count == nullptr ? 0 : count(obstacle);
}

ChosenBackend MakeCudaBackend(int device) {
  ChosenBackend chosen;
  const auto make = FindFunction<MakeCudaBackendFunction>(kMakeCudaBackend, chosen.obstacle);
  if (make != nullptr) chosen.backend.reset(make(device, chosen.obstacle));
  return chosen;
}

ChosenAllReduce MakeCudaAllReduce(std::span<TrainingBackend* const> backends) {
  ChosenAllReduce chosen;
  const auto make = FindFunction<MakeCudaAllReduceFunction>(kMakeCudaAllReduce, chosen.obstacle);
  if (make != nullptr) chosen.all_reduce.reset(make(backends, chosen.obstacle));
  return chosen;
}

std::string NewAllReduceId(std::string& obstacle) {
  const auto make = FindFunction<NewAllReduceIdFunction>(kNewAllReduceId, obstacle);
  return make == nullptr ? "" : make(obstacle);
}

ChosenAllReduce MakeCudaAllReduce(TrainingBackend& backend, const AllReduceRank& rank) {
  ChosenAllReduce chosen;
  const auto make = FindFunction<JoinCudaAllReduceFunction>(kJoinCudaAllReduce, chosen.obstacle);
  if (make != nullptr) {
    chosen.all_reduce.reset(make(backend, rank.id, rank.rank, rank.size, chosen.obstacle));
  }
  return chosen;
}

std::unique_ptr<DeviceYardsticks> MakeDeviceYardsticks() {
  std::string obstacle;
  const auto make = FindFunction<MakeCudaYardsticksFunction>(kMakeCudaYardsticks, obstacle);
  return std::unique_ptr<DeviceYardsticks>(make == nullptr ? nullptr : make(obstacle));
}

}  // namespace hippodrome
