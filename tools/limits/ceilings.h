// What this machine can do at best, measured, so that every rate can be told as a fraction of it.
#ifndef HIPPODROME_TOOLS_LIMITS_CEILINGS_H_
#define HIPPODROME_TOOLS_LIMITS_CEILINGS_H_

#include <cstddef>

#include "kernels/cpu/base/thread_pool.h"

namespace hippodrome {

// All rates are of all threads of `pool` together, the best of some short runs (about 0.1 s each
// call). Cores and memory are shared with whatever else runs: measure next to what is compared.

// Bytes per second read from memory in huge pages, over `bytes` that should exceed the caches.
double MeasureReadBandwidth(ThreadPool& pool, size_t bytes = size_t{256} << 20);

// Floating-point operations per second of f32 multiply-adds (two operations each) in registers.
double MeasureF32Rate(ThreadPool& pool);

// The same of bf16 products, in matrix registers (AMX) or as dot products; 0 where the processor
// has neither.
double MeasureBF16Rate(ThreadPool& pool);

}  // namespace hippodrome

#endif  // HIPPODROME_TOOLS_LIMITS_CEILINGS_H_
