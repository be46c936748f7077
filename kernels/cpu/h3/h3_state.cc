#include "kernels/cpu/h3/h3_state.h"

#include <algorithm>
#include <cassert>

#include "kernels/cpu/base/memory.h"

namespace hippodrome::cpu {
namespace {

// x[n] = sum_{j <= n} B[n - j] u_{T - j}.  recent: u_T, u_{T-1}, ...
void ExportChannel(const float* b, const std::vector<float>& recent, float* x) {
  for (size_t n = 0; n < recent.size(); ++n) {
    double sum = 0;
    for (size_t j = 0; j <= n; ++j) sum += double{b[n - j]} * recent[j];
    x[n] = static_cast<float>(sum);
  }
}

void ExportShift(const H3PrefillWeights& constants, const H3Slots& state, int64_t slot,
                 int64_t position, float* shift) {
  const H3Layout& layout = constants.layout();
  std::vector<float> recent(static_cast<size_t>(layout.taps));
  for (int64_t channel = 0; channel < layout.d_model; ++channel) {
    const int64_t group = channel / (layout.group_heads * layout.head_dim);
    const int64_t c = channel - layout.FirstChannel(group);
    const float* ring =
        state.Group(slot, group) + c / kTileChannels * layout.ring_floats() + c % kTileChannels;
    for (int64_t j = 0; j < layout.taps; ++j) {
      const int64_t at = (position % layout.taps - 1 - j + 2 * layout.taps) % layout.taps;
      recent[static_cast<size_t>(j)] = ring[at * kTileChannels];
    }
    ExportChannel(constants.shift_b().data() + channel * layout.taps, recent,
                  shift + channel * layout.taps);
  }
}

// Row (head, d1, d2) becomes [d1, d2, head] and x' becomes x = dB x'.
void ExportDiagonal(const H3PrefillWeights& constants, const H3Slots& state, int64_t slot,
                    float* diagonal) {
  const H3Layout& layout = constants.layout();
  const int64_t square = layout.head_dim * layout.head_dim;
  for (int64_t head = 0; head < layout.heads; ++head) {
    const int64_t group = head / layout.group_heads;
    for (int64_t pair = 0; pair < square; ++pair) {
      const int64_t row = head % layout.group_heads * square + pair;
      const float* block = state.Group(slot, group) + layout.channel_blocks * layout.ring_floats() +
                           row / kTileChannels * layout.block_state_floats() + row % kTileChannels;
      float* out = diagonal + (pair * layout.heads + head) * layout.modes * 2;
      for (int64_t n = 0; n < layout.modes; ++n) {
        const std::complex<float> scaled(block[n * kModeFloats],
                                         block[n * kModeFloats + kTileChannels]);
        const auto x = scaled * constants.db()[static_cast<size_t>(head * layout.modes + n)];
        out[2 * n] = x.real();
        out[2 * n + 1] = x.imag();
      }
    }
  }
}

}  // namespace

H3Slots::H3Slots(const H3Layout& layout, int64_t slots)
    : slots_(slots),
      group_floats_(layout.group_state_floats()),
      slot_floats_(layout.groups * group_floats_),
      values_(AllocateZeroed(static_cast<size_t>(slots * slot_floats_) * sizeof(float))) {}

int64_t H3Slots::bytes_per_slot() const {
  return slot_floats_ * static_cast<int64_t>(sizeof(float));
}

float* H3Slots::Group(int64_t slot, int64_t group) const {
  assert(slot >= 0 && slot < slots());
  return static_cast<float*>(values_.get()) + slot * slot_floats_ + group * group_floats_;
}

void H3Slots::Reset(int64_t slot) { std::fill_n(Group(slot, 0), slot_floats_, 0.0f); }

void H3Slots::Copy(int64_t from, int64_t to) {
  if (from == to) return;
  std::copy_n(Group(from, 0), slot_floats_, Group(to, 0));
}

H3StateExport ExportSlot(const H3PrefillWeights& constants, const H3Slots& state, int64_t slot,
                         int64_t position) {
  const H3Layout& layout = constants.layout();
  H3StateExport out;
  out.shift.resize(static_cast<size_t>(layout.d_model * layout.taps));
  out.diagonal.resize(static_cast<size_t>(layout.d_model * layout.head_dim * layout.modes * 2));
  ExportShift(constants, state, slot, position, out.shift.data());
  ExportDiagonal(constants, state, slot, out.diagonal.data());
  return out;
}

}  // namespace hippodrome::cpu
