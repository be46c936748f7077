#include "kernels/make_backend.h"

#include "kernels/cpu/cpu_backend.h"

namespace hippodrome {

std::unique_ptr<Backend> MakeCpuBackend(const CpuOptions& options) {
  return std::make_unique<CpuBackend>(options.threads);
}

}  // namespace hippodrome
