// What tests see of the runtime, and the failures that they ask it for.
#ifndef HIPPODROME_TESTS_CUDA_ON_CPU_RUNTIME_WATCH_H_
#define HIPPODROME_TESTS_CUDA_ON_CPU_RUNTIME_WATCH_H_

#include <cuda_runtime.h>

#include <cstdint>

namespace cuda_on_cpu {

// Pieces of device memory that were allocated so far, freed or not.
int64_t AllocationCount();

// The next cudaGraphInstantiate() fails with `error`, and makes nothing.
void FailNextInstantiation(cudaError_t error);

}  // namespace cuda_on_cpu

#endif  // HIPPODROME_TESTS_CUDA_ON_CPU_RUNTIME_WATCH_H_
