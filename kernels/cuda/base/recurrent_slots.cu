#include "kernels/cuda/base/recurrent_slots.h"

#include <cassert>
#include <utility>

#include "kernels/cuda/base/elementwise.h"
#include "kernels/cuda/base/tensor_memory.h"

namespace hippodrome::cuda {
namespace {

int64_t FloatsOf(const std::vector<StateArray>& arrays) {
  int64_t floats = 0;
  for (const StateArray& array : arrays) floats += array.values();
  return floats;
}

}  // namespace

RecurrentSlots::RecurrentSlots(Device& device, std::vector<StateArray> arrays, int64_t slots)
    : arrays_(std::move(arrays)),
      values_(NewMatrix(device, slots, FloatsOf(arrays_), DType::kF32)) {}

void RecurrentSlots::Reset(Device& device, int64_t slot) {
  Fill(device, 0, values_.view.Rows(slot, 1));
}

void RecurrentSlots::Copy(Device& device, int64_t from, int64_t to) {
  if (from == to) return;
  cuda::Copy(device, values_.view.Rows(from, 1), values_.view.Rows(to, 1));
}

void RecurrentSlots::Export(Device& device, int64_t slot,
                            std::span<const std::span<float>> arrays) const {
  assert(arrays.size() == arrays_.size());
  int64_t first = 0;
  for (const std::span<float> array : arrays) {
    CopyOut(device, values_.view.Rows(slot, 1).Cols(first, std::ssize(array)), array);
    first += std::ssize(array);
  }
}

void RecurrentSlots::Import(Device& device, int64_t slot,
                            std::span<const std::span<const float>> arrays) {
  assert(arrays.size() == arrays_.size());
  int64_t first = 0;
  for (const std::span<const float> array : arrays) {
    CopyIn(device, array, values_.view.Rows(slot, 1).Cols(first, std::ssize(array)));
    first += std::ssize(array);
  }
}

}  // namespace hippodrome::cuda
