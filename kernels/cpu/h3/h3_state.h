// The recurrent states of one H3 layer on the CPU.
#ifndef HIPPODROME_KERNELS_CPU_H3_H3_STATE_H_
#define HIPPODROME_KERNELS_CPU_H3_H3_STATE_H_

#include <vector>

#include "kernels/cpu/base/recurrent_slots.h"
#include "kernels/cpu/h3/h3_weights.h"

namespace hippodrome::cpu {

// What a slot keeps of a group: rings and modes of the tokens before `base`, and the pending
// tokens from there on, which h3_block.h takes into them a block at a time.
struct GroupState {
  struct Block {
    int32_t base = 0;       // position
    int32_t has_ahead = 0;  // whether key_sums and sums of `pending` are of this base
  };

  Block* block;
  PendingRows pending;
  float* rings;  // [channel blocks, taps, lanes]: k of the token at p is in row p mod N
  float* modes;  // [row blocks, modes, re | im, lanes]: x / dB
};

// A slot has the blocks of all groups, then their pending rows side by side, for every step reads
// these; then for each group its rings and modes.
class H3Slots final : public RecurrentSlots {
 public:
  // `constants` must outlive it.
  H3Slots(const H3PrefillWeights& constants, int64_t slots);

  int64_t bytes_per_step() const override;
  int64_t rewind_block() const override { return kScanSteps; }
  std::vector<StateArray> arrays() const override;
  int64_t Export(int64_t slot, int64_t position,
                 std::span<const std::span<float>> arrays) const override;
  void Import(int64_t slot, int64_t position,
              std::span<const std::span<const float>> arrays) override;

  GroupState Group(int64_t slot, int64_t group) const;

 private:
  const H3PrefillWeights& constants_;
  const H3Layout& layout_;
};

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_H3_H3_STATE_H_
