// The recurrent states of one layer on a device, as they are exchanged.
#ifndef HIPPODROME_KERNELS_CUDA_BASE_RECURRENT_SLOTS_H_
#define HIPPODROME_KERNELS_CUDA_BASE_RECURRENT_SLOTS_H_

#include <span>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cuda/base/device.h"

namespace hippodrome::cuda {

// Each slot has the arrays one after another.
class RecurrentSlots final : public RecurrentState {
 public:
  RecurrentSlots(Device& device, std::vector<StateArray> arrays, int64_t slots);

  int64_t slots() const override { return values_.view.rows; }
  int64_t bytes_per_slot() const override { return floats() * static_cast<int64_t>(sizeof(float)); }
  // All of it, both ways.
  int64_t bytes_per_step() const override { return 2 * bytes_per_slot(); }
  std::vector<StateArray> arrays() const override { return arrays_; }
  void Reset(Device& device, int64_t slot);
  void Copy(Device& device, int64_t from, int64_t to);
  // As Backend::ExportSlot() and ImportSlot().
  void Export(Device& device, int64_t slot, std::span<const std::span<float>> arrays) const;
  void Import(Device& device, int64_t slot, std::span<const std::span<const float>> arrays);

  // Of a slot; slots are adjacent.
  int64_t floats() const { return values_.view.cols; }
  float* Slot(int64_t slot) const {
    return static_cast<float*>(values_.view.data) + slot * floats();
  }

 private:
  std::vector<StateArray> arrays_;
  OwnedTensor values_;  // [slots, floats]
};

}  // namespace hippodrome::cuda

#endif  // HIPPODROME_KERNELS_CUDA_BASE_RECURRENT_SLOTS_H_
