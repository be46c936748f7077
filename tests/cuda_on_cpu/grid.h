// The blocks of a launch, one after another.
#ifndef HIPPODROME_TESTS_CUDA_ON_CPU_GRID_H_
#define HIPPODROME_TESTS_CUDA_ON_CPU_GRID_H_

#include <vector>

#include "tests/cuda_on_cpu/block.h"

namespace cuda_on_cpu {

// Runs the blocks in this order. Throws std::logic_error where one breaks the rules; the rest does
// not run then.
void RunBlocks(const KernelLaunch& launch, const std::vector<uint3>& blocks);

}  // namespace cuda_on_cpu

#endif  // HIPPODROME_TESTS_CUDA_ON_CPU_GRID_H_
