// What the blocked look-ahead of h3_lookahead.h keeps of a slot, beside rings and modes.
#ifndef HIPPODROME_KERNELS_CUDA_H3_H3_AHEAD_H_
#define HIPPODROME_KERNELS_CUDA_H3_H3_AHEAD_H_

#include <cstdint>

#include "kernels/cuda/h3/h3_weights.h"

namespace hippodrome::cuda {

inline constexpr int32_t kAheadSteps = kScanSteps;  // of a block
inline constexpr int32_t kAheadTaps = 64;
// Channels that a block of threads takes; each such group has a base of its own, so that its
// threads read and write it without the others.
inline constexpr int32_t kAheadChannels = 32;

inline bool CanLookAhead(const H3View& h3) { return h3.head_dim == 1 && h3.taps == kAheadTaps; }

constexpr int64_t AheadGroups(int64_t channels) {
  return (channels + kAheadChannels - 1) / kAheadChannels;
}

// Bytes of a slot, a multiple of 256; an activation has `activation` bytes.
constexpr int64_t AheadBytes(int64_t channels, int64_t activation) {
  const int64_t row = channels * (2 * static_cast<int64_t>(sizeof(float)) + activation);
  const int64_t bytes =
      kAheadSteps * row + AheadGroups(channels) * static_cast<int64_t>(sizeof(int32_t));
  return (bytes + 255) / 256 * 256;
}

// One slot, in this order in memory. Rows are [kAheadSteps, d], that of the token at position p is
// p mod kAheadSteps.
template <typename T>
struct AheadSlot {
  __host__ __device__ AheadSlot(void* memory, int64_t slot, int64_t channels)
      : sums(reinterpret_cast<float*>(static_cast<char*>(memory) +
                                      slot * AheadBytes(channels, sizeof(T)))),
        keys_before(sums + kAheadSteps * channels),
        keys(reinterpret_cast<T*>(keys_before + kAheadSteps * channels)),
        bases(reinterpret_cast<int32_t*>(keys + kAheadSteps * channels)) {}

  float* sums;         // kv of the pending tokens, Y of the others of the block
  float* keys_before;  // F
  T* keys;             // k of the pending tokens
  int32_t* bases;      // [AheadGroups(d)]: position after the last settled token
};

// How many of the tokens before `position` are pending: not in ring and modes.
constexpr int32_t PendingTokens(int32_t base, int32_t position) {
  if (position <= base) return 0;
  const int32_t block = (position - 1) / kAheadSteps * kAheadSteps;
  return position - (base > block ? base : block);
}

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_H3_H3_AHEAD_H_
