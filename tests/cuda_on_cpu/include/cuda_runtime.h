// Stands for the toolkit's <cuda_runtime.h> where a host compiler reads kernels/cuda: as much of
// the language, of the device functions and of the runtime API as is used there. See ../README.md.
#ifndef HIPPODROME_TESTS_CUDA_ON_CPU_INCLUDE_CUDA_RUNTIME_H_
#define HIPPODROME_TESTS_CUDA_ON_CPU_INCLUDE_CUDA_RUNTIME_H_

#include "cuda_on_cpu/language.h"
// After the language.
#include "cuda_on_cpu/device_functions.h"
#include "cuda_on_cpu/device_math.h"
#include "cuda_on_cpu/emulator.h"
#include "cuda_on_cpu/runtime_api.h"

#endif  // HIPPODROME_TESTS_CUDA_ON_CPU_INCLUDE_CUDA_RUNTIME_H_
