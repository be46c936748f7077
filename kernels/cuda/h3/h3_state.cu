#include "kernels/cuda/h3/h3_state.h"

#include <cassert>

namespace hippodrome::cuda {
namespace {

void Clear(Device& device, void* to, int64_t bytes) {
  device.Note(cudaMemsetAsync(to, 0, static_cast<size_t>(bytes), device.stream()), "reset_slot");
}

}  // namespace

H3Slots::H3Slots(Device& device, const H3PrefillWeights& constants, int64_t slots)
    : constants_(constants), slots_(slots) {
  const H3View& h3 = constants.view();
  const auto activation = static_cast<int64_t>(SizeOf(constants.activations()));
  const auto complex = static_cast<int64_t>(sizeof(float2));
  rings_.bytes = int64_t{h3.d_model} * h3.taps * activation;
  modes_.bytes = int64_t{h3.d_model} * h3.head_dim * h3.modes * complex;
  if (slots >= kLookaheadSlots && CanLookAhead(h3)) {
    ahead_.bytes = AheadBytes(h3.d_model, activation);
  }
  for (Part* part : {&rings_, &modes_, &ahead_}) {
    part->memory = AllocateZeroed(device, static_cast<size_t>(slots * part->bytes));
  }
}

int64_t H3Slots::bytes_per_slot() const { return rings_.bytes + modes_.bytes + ahead_.bytes; }

// Rings are read and one row of them written, modes both read and written: at each step, or at the
// start of a block of the look-ahead, whose rows are written then and read step by step.
int64_t H3Slots::bytes_per_step() const {
  const int64_t settled = rings_.bytes + rings_.bytes / constants_.view().taps + 2 * modes_.bytes;
  if (!looks_ahead()) return settled;
  return (settled + ahead_.bytes) / kAheadSteps + ahead_.bytes / 2;
}

std::vector<StateArray> H3Slots::arrays() const {
  const H3View& h3 = constants_.view();
  return H3StateArrays(h3.heads, h3.head_dim, h3.taps);
}

std::array<H3Slots::Place, 3> H3Slots::Places(int64_t slot) const {
  assert(slot >= 0 && slot < slots_);
  const auto place = [slot](const Part& part) {
    return Place{static_cast<char*>(part.memory.get()) + slot * part.bytes, part.bytes};
  };
  return {place(rings_), place(modes_), place(ahead_)};
}

void H3Slots::Reset(Device& device, int64_t slot) {
  for (const Place& place : Places(slot)) {
    if (place.bytes > 0) Clear(device, place.begin, place.bytes);
  }
}

void H3Slots::Copy(Device& device, int64_t from, int64_t to) {
  if (from == to) return;
  const std::array<Place, 3> source = Places(from);
  const std::array<Place, 3> target = Places(to);
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i].bytes == 0) continue;
    CopyOnDevice(device, source[i].begin, target[i].begin, static_cast<size_t>(source[i].bytes),
                 "copy_slot");
  }
}

}  // namespace hippodrome::cuda
