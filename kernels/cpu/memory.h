// Memory for weights, states and activations.
#ifndef HIPPODROME_KERNELS_CPU_MEMORY_H_
#define HIPPODROME_KERNELS_CPU_MEMORY_H_

#include <cstddef>
#include <memory>

namespace hippodrome {

// `bytes` zeroed bytes, aligned to 64 at least. Large blocks are mapped on their own with the advice
// to use huge pages, become resident as they are touched, and go back to the system when freed.
std::shared_ptr<void> AllocateZeroed(size_t bytes);

}  // namespace hippodrome

#endif  // HIPPODROME_KERNELS_CPU_MEMORY_H_
