// The recurrent states of one H3 layer on a device.
#ifndef HIPPODROME_KERNELS_CUDA_H3_H3_STATE_H_
#define HIPPODROME_KERNELS_CUDA_H3_H3_STATE_H_

#include <cstdint>
#include <memory>

#include "kernels/cuda/h3/h3_ahead.h"
#include "kernels/cuda/h3/h3_weights.h"

namespace hippodrome::cuda {

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

class H3Slots final : public H3State {
 public:
  H3Slots(Device& device, const H3Constants& constants, int64_t slots);

  int64_t slots() const override { return slots_; }
  int64_t bytes_per_slot() const override;

  // REQUIRES: T is float or BF16, as the activations of the layer are.
  template <typename T>
  H3StateView<T> view() const {
    return {static_cast<T*>(rings_.memory.get()), static_cast<float2*>(modes_.memory.get())};
  }

  // Whether the last tokens of a slot may wait in the memory below, outside of rings and modes:
  // H3Step() knows, and H3Settle() ends that.
  bool looks_ahead() const { return ahead_.bytes > 0; }
  void* ahead() const { return ahead_.memory.get(); }  // as AheadSlot says

  void Reset(Device& device, int64_t slot);
  void Copy(Device& device, int64_t from, int64_t to);

 private:
  struct Part {
    int64_t bytes = 0;  // per slot
    std::shared_ptr<void> memory;
  };

  int64_t slots_;
  Part rings_;
  Part modes_;
  Part ahead_;
};

// The state of `slot` after `position` tokens in the published definition. Waits for the device.
H3StateExport ExportSlot(Device& device, const H3Constants& constants, const H3Slots& state,
                         int64_t slot, int64_t position);

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_H3_H3_STATE_H_
