// y = epilogue(x W^T) on packed weights.
#ifndef HIPPODROME_KERNELS_CPU_LINEAR_H_
#define HIPPODROME_KERNELS_CPU_LINEAR_H_

#include "kernels/backend.h"
#include "kernels/cpu/packed_weights.h"
#include "kernels/cpu/thread_pool.h"

namespace hippodrome::cpu {

// Which kernel multiplies bf16 weights: the processor's, or the one that expands them to f32.
enum class BF16Kernel : uint8_t { kBest, kPlain };

// The contract of Backend::Linear.
void Linear(ThreadPool& pool, Tensor x, const PackedWeights& w, const Epilogue& epilogue, Tensor y,
            BF16Kernel kernel = BF16Kernel::kBest);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_LINEAR_H_
