// Parts of sequences as kernels take them.
#ifndef HIPPODROME_KERNELS_CUDA_BASE_SEQUENCE_PARTS_H_
#define HIPPODROME_KERNELS_CUDA_BASE_SEQUENCE_PARTS_H_

#include <algorithm>
#include <span>

#include "kernels/backend.h"
#include "kernels/cuda/base/tensor_memory.h"

namespace hippodrome::cuda {

// In scratch memory: valid until the next call.
inline const SequencePart* CopyParts(Device& device, std::span<const SequencePart> parts) {
  return CopyToScratch(device, ScratchUse::kSequenceParts, parts);
}

// Tokens of the longest of `parts`; 0 of none.
inline int32_t LongestPart(std::span<const SequencePart> parts) {
  int32_t longest = 0;
  for (const SequencePart& part : parts) longest = std::max(longest, part.tokens);
  return longest;
}

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_BASE_SEQUENCE_PARTS_H_
