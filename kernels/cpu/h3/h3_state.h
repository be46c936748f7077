// The recurrent states of one H3 layer on the CPU.
#ifndef HIPPODROME_KERNELS_CPU_H3_H3_STATE_H_
#define HIPPODROME_KERNELS_CPU_H3_H3_STATE_H_

#include <memory>
#include <vector>

#include "kernels/cpu/h3/h3_weights.h"

namespace hippodrome::cpu {

class H3Slots final : public H3State {
 public:
  H3Slots(const H3Layout& layout, int64_t slots);

  int64_t slots() const override { return slots_; }
  int64_t bytes_per_slot() const override;

  void Reset(int64_t slot);
  void Copy(int64_t from, int64_t to);

  // H3Layout says what is in a group's state. The input of the token at position p is in row
  // p mod N of the rings.
  float* Group(int64_t slot, int64_t group) const;

 private:
  int64_t slots_;
  int64_t group_floats_;
  int64_t slot_floats_;
  std::shared_ptr<void> values_;  // [slots, groups, group_floats] f32
};

// The state of `slot` after `position` tokens in the published definition.
H3StateExport ExportSlot(const H3PrefillWeights& constants, const H3Slots& state, int64_t slot,
                         int64_t position);

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_H3_H3_STATE_H_
