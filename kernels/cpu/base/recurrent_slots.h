// The recurrent states of one layer on the CPU.
#ifndef HIPPODROME_KERNELS_CPU_BASE_RECURRENT_SLOTS_H_
#define HIPPODROME_KERNELS_CPU_BASE_RECURRENT_SLOTS_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>

#include "kernels/backend.h"
#include "kernels/cpu/base/thread_pool.h"

namespace hippodrome::cpu {

// As many floats for each slot; subclasses say what they are.
class RecurrentSlots : public RecurrentState {
 public:
  int64_t slots() const override { return slots_; }
  int64_t bytes_per_slot() const override {
    return slot_floats_ * static_cast<int64_t>(sizeof(float));
  }
  // All of it, both ways.
  int64_t bytes_per_step() const override { return 2 * bytes_per_slot(); }

  void Reset(int64_t slot);
  void Copy(ThreadPool& pool, int64_t from, int64_t to);
  // As Backend::ExportSlot() and ImportSlot().
  virtual int64_t Export(int64_t slot, int64_t position,
                         std::span<const std::span<float>> arrays) const = 0;
  virtual void Import(int64_t slot, int64_t position,
                      std::span<const std::span<const float>> arrays) = 0;

  // All of a slot.
  float* Slot(int64_t slot) const;

 protected:
  RecurrentSlots(int64_t slots, int64_t slot_floats);

 private:
  int64_t slots_;
  int64_t slot_floats_;
  std::shared_ptr<void> values_;  // [slots, slot_floats] f32, zeroed
};

// Those of one part of a pass.
inline std::span<const StateCapture> CapturesOf(const SequenceParts& parts, int64_t part) {
  const auto of_part = std::ranges::equal_range(parts.captures, part, {}, &StateCapture::part);
  return {of_part.begin(), of_part.end()};
}

}  // namespace hippodrome::cpu

#endif  // HIPPODROME_KERNELS_CPU_BASE_RECURRENT_SLOTS_H_
