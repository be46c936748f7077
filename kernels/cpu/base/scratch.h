// Working memory of one thread, kept between operations so that a step allocates nothing.
#ifndef HIPPODROME_KERNELS_CPU_BASE_SCRATCH_H_
#define HIPPODROME_KERNELS_CPU_BASE_SCRATCH_H_

#include <cstddef>
#include <cstdint>

namespace hippodrome {

// Who holds the memory: a function asks under its own name, so that callers keep theirs.
enum class ScratchUse : uint8_t {
  kLinearInput,
  kLinearPanel,
  kLinearSums,
  kLinearGradient,
  kLinearTransposed,
  kLinearColumns,
  kLinearPartialSums,
  kLogits,
  kAttentionRotation,
  kAttentionTile,
  kRowSums,
  kSampleWeights,
  kConvolution,
  kH3Tile,
  kUses,  // how many there are: stays last
};
inline constexpr int kScratchUses = static_cast<int>(ScratchUse::kUses);

// At least `bytes` bytes, aligned to 64, with unspecified contents. They belong to the calling
// thread until it asks for the same use again or ends.
void* ThreadScratch(ScratchUse use, size_t bytes);

template <typename T>
T* ThreadScratch(ScratchUse use, int64_t count) {
  return static_cast<T*>(ThreadScratch(use, static_cast<size_t>(count) * sizeof(T)));
}

}  // namespace hippodrome

#endif  // HIPPODROME_KERNELS_CPU_BASE_SCRATCH_H_
