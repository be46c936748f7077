#include "kernels/cuda/cuda_backend.h"
#include "tests/testing/test_backend.h"

namespace hippodrome {

ChosenBackend MakeTestBackend() { return {.backend = std::make_unique<CudaBackend>()}; }

bool TestBackendIsSlow() { return true; }

}  // namespace hippodrome
