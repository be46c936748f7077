#include "kernels/cpu/h3/h3_state.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/h3/h3_state.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "kernels/cpu/base/lanes-inl.h"
#include "kernels/cpu/base/memory.h"
#include "kernels/cpu/h3/h3_block.h"

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

// A tile of bf16 goes through one of f32, some rows at a time.
void Read(const BF16* tile, int64_t rows, const LaneRows<float>& lanes, int64_t first) {
  alignas(kTileChannels * sizeof(float)) float some[kBlockFloats];
  for (int64_t r = 0; r < rows; r += kScanSteps) {
    const int64_t count = std::min(kScanSteps, rows - r);
    CopyValues(tile + r * kTileChannels, count * kTileChannels, some);
    Read(some, count, lanes, first + r);
  }
}

void Write(const LaneRows<const float>& lanes, int64_t first, int64_t rows, BF16* tile) {
  alignas(kTileChannels * sizeof(float)) float some[kBlockFloats];
  for (int64_t r = 0; r < rows; r += kScanSteps) {
    const int64_t count = std::min(kScanSteps, rows - r);
    Write(lanes, first + r, count, some);
    CopyValues(some, count * kTileChannels, tile + r * kTileChannels);
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

// Where the value of a row of a group is in an array [d1, d2, H].
int64_t ExchangedRow(const H3Layout& layout, int64_t group, int64_t row) {
  const int64_t square = layout.head_dim * layout.head_dim;
  return row % square * layout.heads + group * layout.group_heads + layout.Head(row);
}

// modes [d1, d2, H, M, 2] of a row block. A row block [M, re | im, lanes] has as rows what a lane
// has side by side.
template <typename Value>
LaneRows<Value> ModeLanes(const H3Layout& layout, int64_t group, int64_t row_block,
                          std::span<Value> modes) {
  LaneRows<Value> lanes = {};
  for (int64_t i = 0; i < kTileChannels; ++i) {
    const int64_t row = row_block * kTileChannels + i;
    if (row >= layout.Rows(group)) break;
    lanes[i] = modes.data() + ExchangedRow(layout, group, row) * layout.modes * 2;
  }
  return lanes;
}

// Calls visit(value, exchanged) for `count` rows of a group's inputs, from `first` on, and
// pending [P, d1, d2, H].
template <typename Visit>
void ForEachInput(const H3Layout& layout, int64_t group, const TokenRows& inputs, int64_t first,
                  int64_t count, const Visit& visit) {
  const int64_t width = layout.heads * layout.head_dim * layout.head_dim;
  for (int64_t row = 0; row < layout.Rows(group); ++row) {
    const int64_t to = ExchangedRow(layout, group, row);
    for (int64_t i = 0; i < count; ++i) {
      visit(inputs.At(first + i, 0)[row], i * width + to);
    }
  }
}

// The parts of a slot.
int64_t WholeRows(int64_t floats) {
  return (floats + kTileChannels - 1) / kTileChannels * kTileChannels;
}

int64_t PlacesFloats(const H3Layout& layout) {
  constexpr int64_t kFloats = sizeof(GroupBlock::Place) / sizeof(float);
  return WholeRows(layout.groups * kFloats);
}

int64_t RingsValues(const H3Layout& layout) { return layout.channel_blocks * layout.ring_values(); }

int64_t GroupValues(const H3Layout& layout) {
  return RingsValues(layout) + layout.row_blocks * layout.modes_values();
}

int64_t SlotFloats(const H3Layout& layout, DType type) {
  const int64_t pending = 2 * kBlockFloats * (layout.channel_blocks + layout.row_blocks);
  const int64_t bytes = RowBytes(type, layout.groups * GroupValues(layout));
  return PlacesFloats(layout) + layout.groups * pending +
         WholeRows(bytes / static_cast<int64_t>(sizeof(float)));
}

}  // namespace

H3Slots::H3Slots(const H3PrefillWeights& constants, int64_t slots, DType type)
    : RecurrentSlots(slots, SlotFloats(constants.layout(), type)),
      constants_(constants),
      layout_(constants.layout()),
      type_(type) {}

// At the start of a block rings and modes are read, modes and what looks ahead written, and the
// pending tokens go to the rings. Each step reads the rows of its block so far and adds its own.
int64_t H3Slots::bytes_per_step() const {
  const int64_t blocks = layout_.channel_blocks + layout_.row_blocks;
  const int64_t block_start = RowBytes(type_, layout_.channel_blocks * (layout_.taps + kScanSteps) +
                                                  layout_.row_blocks * 2 * 2 * layout_.modes) +
                              RowBytes(DType::kF32, blocks * 2 * kScanSteps);
  const int64_t pending = (kScanSteps + 1) / 2;  // rows that are read on average, of four or five
  const int64_t step = RowBytes(DType::kF32, blocks * (pending + 2));
  return layout_.groups * kTileChannels * (block_start / kScanSteps + step);
}

std::vector<StateArray> H3Slots::arrays() const {
  return H3StateArrays(layout_.heads, layout_.head_dim, layout_.taps);
}

template <typename Stored>
GroupState<Stored> H3Slots::Group(int64_t slot, int64_t group) const {
  assert(SizeOf(type_) == sizeof(Stored));
  Parts parts(Slot(slot));
  auto* places = reinterpret_cast<GroupBlock::Place*>(parts.Take(PlacesFloats(layout_)));
  const auto rows = [&](int64_t group_blocks) {
    const int64_t floats = group_blocks * kTileChannels;
    float* all = parts.Take(kScanSteps * layout_.groups * floats);
    return TokenRows{all + group * floats, layout_.groups * floats};
  };
  const PendingRows pending = {.keys = rows(layout_.channel_blocks),
                               .key_sums = rows(layout_.channel_blocks),
                               .inputs = rows(layout_.row_blocks),
                               .sums = rows(layout_.row_blocks)};
  Stored* rings = reinterpret_cast<Stored*>(parts.Take(0)) + group * GroupValues(layout_);
  return {{places + group, pending}, rings, rings + RingsValues(layout_)};
}

template GroupState<float> H3Slots::Group(int64_t slot, int64_t group) const;
template GroupState<BF16> H3Slots::Group(int64_t slot, int64_t group) const;

// Whole blocks are taken in first, as the next step would, so that fewer tokens than a block's are
// pending: in a copy, for the slot is to stay as it is.
template <typename Stored>
int64_t H3Slots::ExportGroup(int64_t slot, int64_t group, int64_t position,
                             std::span<const std::span<float>> arrays) const {
  const int64_t oldest = position % layout_.taps;  // in a ring
  const int64_t values = GroupValues(layout_);
  GroupState<Stored> state = Group<Stored>(slot, group);
  GroupBlock::Place place = *state.place;
  Stored* copy = ThreadScratch<Stored>(ScratchUse::kH3Tile, values);
  if (position % kScanSteps == 0) {
    std::copy_n(state.rings, values, copy);
    state = {{&place, state.pending}, copy, copy + RingsValues(layout_)};
    Settle(constants_, group, state, position);
  }
  const int64_t pending = position - place.base;
  const int64_t first = place.base % kScanSteps;
  const int64_t in_keys = std::min(pending, layout_.taps);
  const int64_t in_ring = layout_.taps - in_keys;
  const int64_t to_end = std::min(in_ring, layout_.taps - oldest);
  for (int64_t c = 0; c < layout_.channel_blocks; ++c) {
    const LaneRows<float> lanes = InputLanes(layout_, group, c, arrays[0]);
    const Stored* ring = state.rings + c * layout_.ring_values();
    alignas(kTileChannels * sizeof(float)) float keys[kBlockFloats];
    const TokenRows& rows = state.pending.keys;
    LoadBlock({rows.At(first + pending - in_keys, c), rows.stride}, kTileChannels, in_keys, keys);
    Read(ring + oldest * kTileChannels, to_end, lanes, 0);
    Read(ring, in_ring - to_end, lanes, to_end);
    Read(keys, in_keys, lanes, in_ring);
  }
  for (int64_t r = 0; r < layout_.row_blocks; ++r) {
    Read(state.modes + r * layout_.modes_values(), 2 * layout_.modes,
         ModeLanes(layout_, group, r, arrays[1]), 0);
  }
  ForEachInput(layout_, group, state.pending.inputs, first, pending,
               [&](float input, int64_t at) { arrays[2][at] = input; });
  return pending;
}

int64_t H3Slots::Export(int64_t slot, int64_t position,
                        std::span<const std::span<float>> arrays) const {
  int64_t pending = 0;
  for (int64_t group = 0; group < layout_.groups; ++group) {
    pending = type_ == DType::kF32 ? ExportGroup<float>(slot, group, position, arrays)
                                   : ExportGroup<BF16>(slot, group, position, arrays);
  }
  return pending;
}

// The rings get what the pending tokens have pushed out of shift_inputs: nothing reads that.
template <typename Stored>
void H3Slots::ImportGroup(int64_t slot, int64_t group, int64_t position,
                          std::span<const std::span<const float>> arrays) {
  const int64_t oldest = position % layout_.taps;
  const int64_t width = layout_.heads * layout_.head_dim * layout_.head_dim;
  const int64_t pending = std::ssize(arrays[2]) / width;
  const int64_t base = position - pending;
  assert(pending <= position % kScanSteps && pending * width == std::ssize(arrays[2]));
  const int64_t in_keys = std::min(pending, layout_.taps);
  const GroupState<Stored> state = Group<Stored>(slot, group);
  *state.place = {.base = static_cast<int32_t>(base), .has_ahead = 0};
  const PendingRows& rows = state.pending;
  for (int64_t i = 0; i < kScanSteps; ++i) {
    std::fill_n(rows.keys.At(i, 0), layout_.channel_blocks * kTileChannels, 0.0f);
    std::fill_n(rows.inputs.At(i, 0), layout_.row_blocks * kTileChannels, 0.0f);
  }
  for (int64_t c = 0; c < layout_.channel_blocks; ++c) {
    const LaneRows<const float> lanes = InputLanes(layout_, group, c, arrays[0]);
    Stored* ring = state.rings + c * layout_.ring_values();
    alignas(kTileChannels * sizeof(float)) float keys[kBlockFloats];
    Write(lanes, 0, layout_.taps - oldest, ring + oldest * kTileChannels);
    Write(lanes, layout_.taps - oldest, oldest, ring);
    Write(lanes, layout_.taps - in_keys, in_keys, keys);
    RoundTo<Stored>(in_keys, keys);
    for (int64_t i = 0; i < in_keys; ++i) {
      std::copy_n(keys + i * kTileChannels, kTileChannels,
                  rows.keys.At((position - in_keys + i) % kScanSteps, c));
    }
  }
  for (int64_t r = 0; r < layout_.row_blocks; ++r) {
    Write(ModeLanes(layout_, group, r, arrays[1]), 0, 2 * layout_.modes,
          state.modes + r * layout_.modes_values());
  }
  ForEachInput(layout_, group, rows.inputs, base % kScanSteps, pending,
               [&](float& input, int64_t at) { input = arrays[2][at]; });
}

void H3Slots::Import(int64_t slot, int64_t position,
                     std::span<const std::span<const float>> arrays) {
  for (int64_t group = 0; group < layout_.groups; ++group) {
    type_ == DType::kF32 ? ImportGroup<float>(slot, group, position, arrays)
                         : ImportGroup<BF16>(slot, group, position, arrays);
  }
}

}  // namespace hippodrome::cpu
#endif  // HWY_ONCE
