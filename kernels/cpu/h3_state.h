// The recurrent states of one H3 layer on the CPU.
#ifndef HIPPODROME_KERNELS_CPU_H3_STATE_H_
#define HIPPODROME_KERNELS_CPU_H3_STATE_H_

#include <memory>
#include <vector>

#include "kernels/cpu/h3_weights.h"

namespace hippodrome::cpu {

// What a slot holds beside its numbers, common to all groups.
struct SlotClock {
  int32_t next = 0;   // place in the rings of the next input
  bool empty = true;  // all zero: no token was taken in since the last reset
};

class H3Slots final : public H3State {
 public:
  H3Slots(const H3Layout& layout, int64_t slots);

  int64_t slots() const override { return static_cast<int64_t>(clocks_.size()); }
  int64_t bytes_per_slot() const override;

  void Reset(int64_t slot);
  void Copy(int64_t from, int64_t to);

  // H3Layout says what is in a group's state.
  float* Group(int64_t slot, int64_t group) const;
  SlotClock& clock(int64_t slot) { return clocks_[static_cast<size_t>(slot)]; }
  const SlotClock& clock(int64_t slot) const { return clocks_[static_cast<size_t>(slot)]; }

 private:
  int64_t group_floats_;
  int64_t slot_floats_;
  std::shared_ptr<void> values_;  // [slots, groups, group_floats] f32
  std::vector<SlotClock> clocks_;
};

// The state of `slot` in the published definition.
H3StateExport ExportSlot(const H3Constants& constants, const H3Slots& state, int64_t slot);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_H3_STATE_H_
