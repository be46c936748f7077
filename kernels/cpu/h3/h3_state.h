// The recurrent states of one H3 layer on the CPU.
#ifndef HIPPODROME_KERNELS_CPU_H3_H3_STATE_H_
#define HIPPODROME_KERNELS_CPU_H3_H3_STATE_H_

#include <memory>
#include <vector>

#include "kernels/cpu/h3/h3_weights.h"

namespace hippodrome::cpu {

class H3Slots final : public RecurrentState {
 public:
  H3Slots(const H3Layout& layout, int64_t slots);

  int64_t slots() const override { return slots_; }
  int64_t bytes_per_slot() const override;
  std::vector<StateArray> arrays() const override;

  void Reset(int64_t slot);
  void Copy(int64_t from, int64_t to);
  // As Backend::ExportSlot() and ImportSlot().
  void Export(int64_t slot, int64_t position, std::span<const std::span<float>> arrays) const;
  void Import(int64_t slot, int64_t position, std::span<const std::span<const float>> arrays);

  // H3Layout says what is in a group's state. The input of the token at position p is in row
  // p mod N of the rings.
  float* Group(int64_t slot, int64_t group) const;

 private:
  H3Layout layout_;
  int64_t slots_;
  int64_t group_floats_;
  int64_t slot_floats_;
  std::shared_ptr<void> values_;  // [slots, groups, group_floats] f32
};

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_H3_H3_STATE_H_
