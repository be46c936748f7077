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

void RecurrentSlots::Copy(ThreadPool& pool, int64_t from, int64_t to) {
  if (from == to) return;
  // 64 KB at a time: forks of a long context copy more than one thread can, while others wait.
  constexpr int64_t kPiece = 16384;
  pool.RunNeighbours((slot_floats_ + kPiece - 1) / kPiece, [&](int64_t i) {
    const int64_t first = i * kPiece;
    std::copy_n(Slot(from) + first, std::min(kPiece, slot_floats_ - first), Slot(to) + first);
  });
}

}  // namespace hippodrome::cpu
