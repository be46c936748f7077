// Chooses a backend by name.
#ifndef HIPPODROME_KERNELS_MAKE_BACKEND_H_
#define HIPPODROME_KERNELS_MAKE_BACKEND_H_

#include <memory>

#include "kernels/backend.h"

namespace hippodrome {

struct CpuOptions {
  // Threads that do arithmetic, the calling one included. 0: one per available core.
  int threads = 0;
};

// Never fails. The caller owns the backend, which must outlive everything made by it.
std::unique_ptr<Backend> MakeCpuBackend(const CpuOptions& options = {});

}  // namespace hippodrome

#endif  // HIPPODROME_KERNELS_MAKE_BACKEND_H_
