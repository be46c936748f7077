#include "kernels/cpu/h3/h3_state.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "kernels/cpu/base/memory.h"

namespace hippodrome::cpu {
namespace {

// Where the values of each lane of a tile lie, adjacent; null for padding lanes.
template <typename Value>
using LaneRows = std::array<Value*, kTileChannels>;

// Rows of a tile that stay in the first cache while they are turned.
constexpr int64_t kTurnedRows = 16;

// lanes[i][first + r] = tile[r, i]
void ReadTile(const float* tile, int64_t rows, const LaneRows<float>& lanes, int64_t first) {
  for (int64_t begin = 0; begin < rows; begin += kTurnedRows) {
    const int64_t end = std::min(rows, begin + kTurnedRows);
    for (int64_t i = 0; i < kTileChannels; ++i) {
      if (lanes[i] == nullptr) continue;
      float* to = lanes[i] + first;
      for (int64_t r = begin; r < end; ++r) to[r] = tile[r * kTileChannels + i];
    }
  }
}

// The reverse; padding lanes become zero.
void WriteTile(const LaneRows<const float>& lanes, int64_t first, int64_t rows, float* tile) {
  for (int64_t begin = 0; begin < rows; begin += kTurnedRows) {
    const int64_t end = std::min(rows, begin + kTurnedRows);
    for (int64_t i = 0; i < kTileChannels; ++i) {
      const float* from = lanes[i] == nullptr ? nullptr : lanes[i] + first;
      for (int64_t r = begin; r < end; ++r) {
        tile[r * kTileChannels + i] = from == nullptr ? 0 : from[r];
      }
    }
  }
}

// shift_inputs [d, N] of a channel block.
template <typename Value>
LaneRows<Value> InputLanes(const H3Layout& layout, int64_t group, int64_t channel_block,
                           std::span<Value> inputs) {
  LaneRows<Value> lanes = {};
  for (int64_t i = 0; i < kTileChannels; ++i) {
    const int64_t channel = channel_block * kTileChannels + i;
    if (channel >= layout.Channels(group)) break;
    lanes[i] = inputs.data() + (layout.FirstChannel(group) + channel) * layout.taps;
  }
  return lanes;
}

// modes [d1, d2, H, M, 2] of a row block. A row block [M, re | im, lanes] has as rows what a lane
// has side by side.
template <typename Value>
LaneRows<Value> ModeLanes(const H3Layout& layout, int64_t group, int64_t row_block,
                          std::span<Value> modes) {
  const int64_t square = layout.head_dim * layout.head_dim;
  LaneRows<Value> lanes = {};
  for (int64_t i = 0; i < kTileChannels; ++i) {
    const int64_t row = row_block * kTileChannels + i;
    if (row >= layout.Rows(group)) break;
    const int64_t head = group * layout.group_heads + layout.Head(row);
    lanes[i] = modes.data() + (row % square * layout.heads + head) * layout.modes * 2;
  }
  return lanes;
}

template <typename Value>
void CheckSizes([[maybe_unused]] const std::vector<StateArray>& expected,
                [[maybe_unused]] std::span<const std::span<Value>> arrays) {
  assert(arrays.size() == expected.size());
  for (size_t i = 0; i < arrays.size(); ++i) {
    assert(std::ssize(arrays[i]) == expected[i].values());
  }
}

}  // namespace

H3Slots::H3Slots(const H3Layout& layout, int64_t slots)
    : layout_(layout),
      slots_(slots),
      group_floats_(layout.group_state_floats()),
      slot_floats_(layout.groups * group_floats_),
      values_(AllocateZeroed(static_cast<size_t>(slots * slot_floats_) * sizeof(float))) {}

int64_t H3Slots::bytes_per_slot() const {
  return slot_floats_ * static_cast<int64_t>(sizeof(float));
}

std::vector<StateArray> H3Slots::arrays() const {
  return H3StateArrays(layout_.heads, layout_.head_dim, layout_.taps);
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

void H3Slots::Export(int64_t slot, int64_t position,
                     std::span<const std::span<float>> arrays) const {
  CheckSizes(this->arrays(), arrays);
  const int64_t oldest = position % layout_.taps;  // in a ring
  for (int64_t group = 0; group < layout_.groups; ++group) {
    const float* tile = Group(slot, group);
    for (int64_t c = 0; c < layout_.channel_blocks; ++c, tile += layout_.ring_floats()) {
      const LaneRows<float> lanes = InputLanes(layout_, group, c, arrays[0]);
      ReadTile(tile + oldest * kTileChannels, layout_.taps - oldest, lanes, 0);
      ReadTile(tile, oldest, lanes, layout_.taps - oldest);
    }
    for (int64_t r = 0; r < layout_.row_blocks; ++r, tile += layout_.block_state_floats()) {
      ReadTile(tile, 2 * layout_.modes, ModeLanes(layout_, group, r, arrays[1]), 0);
    }
  }
}

void H3Slots::Import(int64_t slot, int64_t position,
                     std::span<const std::span<const float>> arrays) {
  CheckSizes(this->arrays(), arrays);
  const int64_t oldest = position % layout_.taps;
  for (int64_t group = 0; group < layout_.groups; ++group) {
    float* tile = Group(slot, group);
    for (int64_t c = 0; c < layout_.channel_blocks; ++c, tile += layout_.ring_floats()) {
      const LaneRows<const float> lanes = InputLanes(layout_, group, c, arrays[0]);
      WriteTile(lanes, 0, layout_.taps - oldest, tile + oldest * kTileChannels);
      WriteTile(lanes, layout_.taps - oldest, oldest, tile);
    }
    for (int64_t r = 0; r < layout_.row_blocks; ++r, tile += layout_.block_state_floats()) {
      WriteTile(ModeLanes(layout_, group, r, arrays[1]), 0, 2 * layout_.modes, tile);
    }
  }
}

}  // namespace hippodrome::cpu
