#include "kernels/make_backend.h"

#include <dlfcn.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cuda/cuda_module.h"

namespace hippodrome {
namespace {

// Asking for the driver first keeps the toolkit's libraries, half a gigabyte, out of processes that
// could not use them.
bool HasDriver() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver != nullptr) dlclose(driver);
  return driver != nullptr;
}

// Beside the executable, or wherever the loader looks.
void* OpenModule() {
  std::error_code error;
  const auto executable = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) {
    const std::string beside = (executable.parent_path() / kCudaModule).string();
    if (std::filesystem::exists(beside, error)) {
      return dlopen(beside.c_str(), RTLD_NOW | RTLD_LOCAL);
    }
  }
  return dlopen(kCudaModule, RTLD_NOW | RTLD_LOCAL);
}

ChosenBackend MakeCudaBackend() {
  if (!HasDriver()) return {.obstacle = "cuda: no NVIDIA driver (libcuda.so.1) on this machine"};
  // Never closed: backends made by it may live as long as the process.
  void* module = OpenModule();
  if (module == nullptr) {
    return {.obstacle = "cuda: no CUDA backend: " + std::string(dlerror())};
  }
  const auto make = reinterpret_cast<MakeCudaBackendFunction*>(dlsym(module, kMakeCudaBackend));
  if (make == nullptr) return {.obstacle = "cuda: " + std::string(dlerror())};
  std::string obstacle;
  Backend* backend = make(obstacle);
  return {.backend = std::unique_ptr<Backend>(backend), .obstacle = std::move(obstacle)};
}

}  // namespace

std::unique_ptr<Backend> MakeCpuBackend(const CpuOptions& options) {
  return std::make_unique<CpuBackend>(options.threads);
}

ChosenBackend MakeBackend(DeviceChoice device, const CpuOptions& cpu) {
  ChosenBackend chosen;
  if (device != DeviceChoice::kCpu) chosen = MakeCudaBackend();
  if (chosen.backend == nullptr && device != DeviceChoice::kCuda) {
    chosen.backend = MakeCpuBackend(cpu);
  }
  return chosen;
}

}  // namespace hippodrome
