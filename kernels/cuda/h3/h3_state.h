// The recurrent states of one H3 layer on a device.
#ifndef HIPPODROME_KERNELS_CUDA_H3_H3_STATE_H_
#define HIPPODROME_KERNELS_CUDA_H3_H3_STATE_H_

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/cuda/h3/h3_weights.h"

namespace hippodrome::cuda {

// What the blocked look-ahead of h3_lookahead.h keeps of a slot, beside rings and modes.

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

// Pointers into device memory, passed to kernels by value. A row is a triple (head, d1, d2), in
// this order: with head_dim 1, a channel.
template <typename T>
struct H3StateView {
  T* rings;       // [slots, d, N]: the k of the token at position p is in column p mod N
  float2* modes;  // [slots, d * head_dim, M]: s_t = dA s_{t-1} + kv_t
};

// States of at least this many slots look ahead where they can (h3_lookahead.h): that pays when
// many sequences step together.
inline constexpr int64_t kLookaheadSlots = 32;

class H3Slots final : public RecurrentState {
 public:
  // `constants` must outlive it.
  H3Slots(Device& device, const H3PrefillWeights& constants, int64_t slots);

  int64_t slots() const override { return slots_; }
  int64_t bytes_per_slot() const override;
  int64_t bytes_per_step() const override;
  std::vector<StateArray> arrays() const override;

  const H3PrefillWeights& constants() const { return constants_; }

  // REQUIRES: T is float or BF16, as the activations of the layer are.
  template <typename T>
  H3StateView<T> view() const {
    return {static_cast<T*>(rings_.memory.get()), static_cast<float2*>(modes_.memory.get())};
  }

  // Whether the last tokens of a slot may wait in the memory below, outside of rings and modes:
  // H3Step() knows, and H3Settle() ends that.
  bool looks_ahead() const { return ahead_.bytes > 0; }
  void* ahead() const { return ahead_.memory.get(); }  // as AheadSlot says

  // Where a slot lies: rings, modes, and what looks ahead; one of no bytes is not there.
  struct Place {
    char* begin;
    int64_t bytes;
  };
  std::array<Place, 3> Places(int64_t slot) const;

  void Reset(Device& device, int64_t slot);
  void Copy(Device& device, int64_t from, int64_t to);

 private:
  struct Part {
    int64_t bytes = 0;  // per slot
    std::shared_ptr<void> memory;
  };

  const H3PrefillWeights& constants_;
  int64_t slots_;
  Part rings_;
  Part modes_;
  Part ahead_;
};

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_H3_H3_STATE_H_
