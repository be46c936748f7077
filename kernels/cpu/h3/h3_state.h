// The recurrent states of one H3 layer on the CPU.
#ifndef HIPPODROME_KERNELS_CPU_H3_H3_STATE_H_
#define HIPPODROME_KERNELS_CPU_H3_H3_STATE_H_

#include <vector>

#include "kernels/cpu/base/recurrent_slots.h"
#include "kernels/cpu/h3/h3_weights.h"

namespace hippodrome::cpu {

class H3Slots final : public RecurrentSlots {
 public:
  H3Slots(const H3Layout& layout, int64_t slots);

  std::vector<StateArray> arrays() const override;
  void Export(int64_t slot, int64_t position,
              std::span<const std::span<float>> arrays) const override;
  void Import(int64_t slot, int64_t position,
              std::span<const std::span<const float>> arrays) override;

  // H3Layout says what is in a group's state. The input of the token at position p is in row
  // p mod N of the rings.
  float* Group(int64_t slot, int64_t group) const;

 private:
  H3Layout layout_;
};

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_H3_H3_STATE_H_
