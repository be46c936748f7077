#include "kernels/cpu/ssm/ssm_state.h"

#include <algorithm>
#include <cassert>

namespace hippodrome::cpu {

constexpr int64_t kLaneComplexFloats = sizeof(LaneComplex) / sizeof(float);

SsmSlots::SsmSlots(const SsmLayout& layout, int64_t slots)
    : RecurrentSlots(slots, layout.tiles() * layout.kept_modes * kLaneComplexFloats),
      layout_(layout) {}

std::vector<StateArray> SsmSlots::arrays() const {
  return SsmStateArrays(layout_.channels, layout_.modes);
}

LaneComplex* SsmSlots::Tile(int64_t slot, int64_t tile) const {
  return reinterpret_cast<LaneComplex*>(Slot(slot)) + tile * layout_.kept_modes;
}

void SsmSlots::CopyTile(int64_t from, int64_t to, int64_t tile) {
  std::copy_n(Tile(from, tile), layout_.kept_modes, Tile(to, tile));
}

int64_t SsmSlots::Export(int64_t slot, int64_t /*position*/,
                         std::span<const std::span<float>> arrays) const {
  assert(arrays.size() == 1 && std::ssize(arrays[0]) == 2 * layout_.channels * layout_.modes);
  float* to = arrays[0].data();
  for (int64_t c = 0; c < layout_.channels; ++c) {
    const LaneComplex* modes = Tile(slot, c / kTileChannels);
    for (int64_t n = 0; n < layout_.modes; ++n) {
      *to++ = modes[n].re[c % kTileChannels];
      *to++ = modes[n].im[c % kTileChannels];
    }
  }
  return 0;
}

// Lanes and modes that are not in the arrays are zero, as they were.
void SsmSlots::Import(int64_t slot, int64_t /*position*/,
                      std::span<const std::span<const float>> arrays) {
  assert(arrays.size() == 1 && std::ssize(arrays[0]) == 2 * layout_.channels * layout_.modes);
  Reset(slot);
  const float* from = arrays[0].data();
  for (int64_t c = 0; c < layout_.channels; ++c) {
    LaneComplex* modes = Tile(slot, c / kTileChannels);
    for (int64_t n = 0; n < layout_.modes; ++n) {
      modes[n].re[c % kTileChannels] = *from++;
      modes[n].im[c % kTileChannels] = *from++;
    }
  }
}

}  // namespace hippodrome::cpu
