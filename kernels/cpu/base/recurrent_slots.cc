#include "kernels/cpu/base/recurrent_slots.h"

#include <algorithm>
#include <cassert>

#include "kernels/cpu/base/memory.h"

namespace hippodrome::cpu {

RecurrentSlots::RecurrentSlots(int64_t slots, int64_t slot_floats)
    : slots_(slots),
      slot_floats_(slot_floats),
      values_(AllocateZeroed(static_cast<size_t>(slots * slot_floats) * sizeof(float))) {}

float* RecurrentSlots::Slot(int64_t slot) const {
  assert(slot >= 0 && slot < slots_);
  return static_cast<float*>(values_.get()) + slot * slot_floats_;
}

void RecurrentSlots::Reset(int64_t slot) { std::fill_n(Slot(slot), slot_floats_, 0.0f); }

void RecurrentSlots::Copy(int64_t from, int64_t to) {
  if (from != to) std::copy_n(Slot(from), slot_floats_, Slot(to));
}

}  // namespace hippodrome::cpu
