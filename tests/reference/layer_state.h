// What all recurrent states of the reference can do.
#ifndef HIPPODROME_TESTS_REFERENCE_LAYER_STATE_H_
#define HIPPODROME_TESTS_REFERENCE_LAYER_STATE_H_

#include <cstdint>
#include <span>

#include "kernels/backend.h"

namespace hippodrome::reference {

class LayerState : public RecurrentState {
 public:
  // All of it, both ways.
  int64_t bytes_per_step() const override { return 2 * bytes_per_slot(); }
  virtual void Reset(int64_t index) = 0;
  virtual void Copy(int64_t from, int64_t to) = 0;
  // As Backend::ExportSlot() and ImportSlot(), but for the rounding to f32.
  virtual void Export(int64_t index, std::span<const std::span<float>> arrays) const = 0;
  virtual void Import(int64_t index, std::span<const std::span<const float>> arrays) = 0;
};

}  // namespace hippodrome::reference

#endif  // HIPPODROME_TESTS_REFERENCE_LAYER_STATE_H_
