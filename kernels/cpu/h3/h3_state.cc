#include "kernels/cpu/h3/h3_state.h"

#include <algorithm>
#include <array>
#include <cassert>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/h3/h3_state.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "kernels/cpu/base/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hippodrome::cpu {
namespace HWY_NAMESPACE {

// Values are turned in blocks of so many rows and lanes.
constexpr int64_t kTurned = 4;

// to[j][i] = from[i][j] for a block.
HWY_INLINE void TurnBlock(const float* const (&from)[kTurned], float* const (&to)[kTurned]) {
#if HWY_TARGET == HWY_SCALAR
  for (int64_t i = 0; i < kTurned; ++i) {
    for (int64_t j = 0; j < kTurned; ++j) to[j][i] = from[i][j];
  }
#else
  const hn::FixedTag<float, kTurned> four;
  const auto row0 = hn::LoadU(four, from[0]);
  const auto row1 = hn::LoadU(four, from[1]);
  const auto row2 = hn::LoadU(four, from[2]);
  const auto row3 = hn::LoadU(four, from[3]);
  const auto low01 = hn::InterleaveLower(four, row0, row1);
  const auto low23 = hn::InterleaveLower(four, row2, row3);
  const auto high01 = hn::InterleaveUpper(four, row0, row1);
  const auto high23 = hn::InterleaveUpper(four, row2, row3);
  hn::StoreU(hn::ConcatLowerLower(four, low23, low01), four, to[0]);
  hn::StoreU(hn::ConcatUpperUpper(four, low23, low01), four, to[1]);
  hn::StoreU(hn::ConcatLowerLower(four, high23, high01), four, to[2]);
  hn::StoreU(hn::ConcatUpperUpper(four, high23, high01), four, to[3]);
#endif
}

// lanes[i][first + r] = tile[r, i], null for padding lanes, which come last.
void ReadTile(const float* tile, int64_t rows, float* const* lanes, int64_t first) {
  for (int64_t r = 0; r < rows; r += kTurned) {
    for (int64_t i = 0; i < kTileChannels; i += kTurned) {
      const float* from = tile + r * kTileChannels + i;
      float* const* to = lanes + i;
      const int64_t at = first + r;
      if (r + kTurned <= rows && to[kTurned - 1] != nullptr) {
        TurnBlock({from, from + kTileChannels, from + 2 * kTileChannels, from + 3 * kTileChannels},
                  {to[0] + at, to[1] + at, to[2] + at, to[3] + at});
        continue;
      }
      for (int64_t j = 0; j < HWY_MIN(kTurned, rows - r); ++j) {
        for (int64_t k = 0; k < kTurned; ++k) {
          if (to[k] != nullptr) to[k][at + j] = from[j * kTileChannels + k];
        }
      }
    }
  }
}

// The reverse; padding lanes become zero.
void WriteTile(const float* const* lanes, int64_t first, int64_t rows, float* tile) {
  for (int64_t r = 0; r < rows; r += kTurned) {
    for (int64_t i = 0; i < kTileChannels; i += kTurned) {
      const float* const* from = lanes + i;
      float* to = tile + r * kTileChannels + i;
      const int64_t at = first + r;
      if (r + kTurned <= rows && from[kTurned - 1] != nullptr) {
        TurnBlock({from[0] + at, from[1] + at, from[2] + at, from[3] + at},
                  {to, to + kTileChannels, to + 2 * kTileChannels, to + 3 * kTileChannels});
        continue;
      }
      for (int64_t j = 0; j < HWY_MIN(kTurned, rows - r); ++j) {
        for (int64_t k = 0; k < kTurned; ++k) {
          to[j * kTileChannels + k] = from[k] == nullptr ? 0 : from[k][at + j];
        }
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace hippodrome::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hippodrome::cpu {

HWY_EXPORT(ReadTile);
HWY_EXPORT(WriteTile);

namespace {

// Where the values of each lane of a tile lie, adjacent; null for padding lanes.
template <typename Value>
using LaneRows = std::array<Value*, kTileChannels>;

void Read(const float* tile, int64_t rows, const LaneRows<float>& lanes, int64_t first) {
  HWY_DYNAMIC_DISPATCH(ReadTile)(tile, rows, lanes.data(), first);
}

void Write(const LaneRows<const float>& lanes, int64_t first, int64_t rows, float* tile) {
  HWY_DYNAMIC_DISPATCH(WriteTile)(lanes.data(), first, rows, tile);
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
    : RecurrentSlots(slots, layout.groups * layout.group_state_floats()), layout_(layout) {}

std::vector<StateArray> H3Slots::arrays() const {
  return H3StateArrays(layout_.heads, layout_.head_dim, layout_.taps);
}

float* H3Slots::Group(int64_t slot, int64_t group) const {
  return Slot(slot) + group * layout_.group_state_floats();
}

void H3Slots::Export(int64_t slot, int64_t position,
                     std::span<const std::span<float>> arrays) const {
  CheckSizes(this->arrays(), arrays);
  const int64_t oldest = position % layout_.taps;  // in a ring
  for (int64_t group = 0; group < layout_.groups; ++group) {
    const float* tile = Group(slot, group);
    for (int64_t c = 0; c < layout_.channel_blocks; ++c, tile += layout_.ring_floats()) {
      const LaneRows<float> lanes = InputLanes(layout_, group, c, arrays[0]);
      Read(tile + oldest * kTileChannels, layout_.taps - oldest, lanes, 0);
      Read(tile, oldest, lanes, layout_.taps - oldest);
    }
    for (int64_t r = 0; r < layout_.row_blocks; ++r, tile += layout_.block_state_floats()) {
      Read(tile, 2 * layout_.modes, ModeLanes(layout_, group, r, arrays[1]), 0);
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
      Write(lanes, 0, layout_.taps - oldest, tile + oldest * kTileChannels);
      Write(lanes, layout_.taps - oldest, oldest, tile);
    }
    for (int64_t r = 0; r < layout_.row_blocks; ++r, tile += layout_.block_state_floats()) {
      Write(ModeLanes(layout_, group, r, arrays[1]), 0, 2 * layout_.modes, tile);
    }
  }
}

}  // namespace hippodrome::cpu
#endif  // HWY_ONCE
