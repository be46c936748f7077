// Memory for weights, states and activations.
#ifndef HIPPODROME_KERNELS_CPU_BASE_MEMORY_H_
#define HIPPODROME_KERNELS_CPU_BASE_MEMORY_H_

#include <cstddef>
#include <memory>

namespace hippodrome {

// `bytes` zeroed bytes, aligned to 64 at least. Blocks from 128 KiB on are mappings of their own:
// they become resident as they are touched, and go back to the system when freed. Those from 2 MiB
// on come with the advice to use huge pages.
std::shared_ptr<void> AllocateZeroed(size_t bytes);

}  // namespace hippodrome

#endif  // HIPPODROME_KERNELS_CPU_BASE_MEMORY_H_
