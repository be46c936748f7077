#include "kernels/cpu/h3/h3_block.h"

#include <hwy/base.h>

#include <algorithm>
#include <cassert>

#include "kernels/cpu/base/memory.h"

namespace hippodrome::cpu {
namespace {

// Also what is `later` blocks on, which is the next group's: lines in rows that are pages apart
// come late. Into the second-level cache: a group's constants fill the first. Always inlined: GCC
// finds a function that only prefetches free of effects, and drops its calls.
HWY_INLINE void PrefetchRows(const TokenRows& rows, int64_t block, int64_t later) {
  for (int64_t t = 0; t < kScanSteps; ++t) {
    __builtin_prefetch(rows.At(t, block), 0, 2);
    __builtin_prefetch(rows.At(t, block + later), 0, 2);
  }
}

// What Begin() reads of a group, but rings and modes, which it fetches as it goes.
HWY_INLINE void PrefetchPending(const H3Layout& layout, const PendingRows& pending) {
  for (int64_t c = 0; c < layout.channel_blocks; ++c) {
    PrefetchRows(pending.keys, c, layout.channel_blocks);
  }
  for (int64_t r = 0; r < layout.row_blocks; ++r) {
    PrefetchRows(pending.inputs, r, layout.row_blocks);
  }
}

// `count` pending keys go to the rings.
template <typename Stored>
void SettleRings(const H3Layout& layout, const GroupState<Stored>& state, int64_t count) {
  const int64_t base = state.place->base;
  for (int64_t c = 0; c < layout.channel_blocks; ++c) {
    Stored* ring = state.rings + c * layout.ring_values();
    for (int64_t i = 0; i < count; ++i) {
      CopyValues(state.pending.keys.At(base % kScanSteps + i, c), kTileChannels,
                 ring + (base + i) % layout.taps * kTileChannels);
    }
  }
}

}  // namespace

template <typename Stored>
H3Block<Stored>::H3Block(const H3PrefillWeights& constants, int64_t group)
    : constants_(constants), layout_(constants.layout()), group_(group) {
  const int64_t panel = layout_.channel_blocks * kTileChannels;
  Parts parts(ThreadScratch<float>(ScratchUse::kH3Block, kBlockFloats + 4 * panel + kTileChannels));
  ahead_ = parts.Take(kBlockFloats);
  ks_ = parts.Take(panel);
  v_ = parts.Take(panel);
  q_ = parts.Take(panel);
  o_ = parts.Take(panel);
  y_ = parts.Take(kTileChannels);
}

// Row i of what looks ahead is for the token i after the base.
template <typename Stored>
void H3Block<Stored>::Begin(const GroupState<Stored>& state, int64_t position,
                            const GroupState<Stored>* next) const {
  if (next != nullptr) PrefetchPending(layout_, next->pending);
  const StoreForm form = next != nullptr ? StoreForm::kStream : StoreForm::kReplace;
  const GroupState<Stored>& ahead = next != nullptr ? *next : state;
  const bool starts = position % kScanSteps == 0;
  const bool whole = starts && position - state.place->base == kScanSteps;
  if (whole) {
    SettleRings(layout_, state, kScanSteps);
    state.place->base = static_cast<int32_t>(position);
  } else if (starts) {
    Settle(constants_, group_, state, position);
  }
  const int64_t first = state.place->base % kScanSteps;
  for (int64_t c = 0; c < layout_.channel_blocks; ++c) {
    const int64_t ring = c * layout_.ring_values();
    LookAheadInRing(constants_.Taps(group_, c), layout_.taps, state.rings + ring,
                    state.place->base % layout_.taps, ahead_, ahead.rings + ring);
    StoreAhead(ahead_, state.pending.key_sums, first, c, form);
  }
  for (int64_t r = 0; r < layout_.row_blocks; ++r) {
    const RowConstants rows = constants_.Rows(group_, r);
    Stored* modes = state.modes + r * layout_.modes_values();
    if (whole) {
      AbsorbAndLookAhead(rows, state.pending.inputs, state.pending.sums, r, form, modes,
                         ahead.modes + r * layout_.modes_values());
    } else {
      LookAhead(rows, modes, ahead_);
      StoreAhead(ahead_, state.pending.sums, first, r, form);
    }
  }
  state.place->has_ahead = 1;
}

template <typename Stored>
void H3Block<Stored>::Step(const GroupBlock& block, int64_t position, const float* qkv,
                           float* o) const {
  assert(!Begins(block, position));
  const TokenStep step = StepAt(constants_, group_, block, position, qkv, o);
  if (layout_.OneChannelPerLane(group_)) return StepChannels<Stored>(step, 1, nullptr);
  ShiftSsm(step);
  LoadPanel(layout_, group_, {step.q, 0}, 1, q_);
  LoadPanel(layout_, group_, {step.v, 0}, 1, v_);
  std::fill_n(o_, layout_.channel_blocks * kTileChannels, 0.0f);
  for (int64_t r = 0; r < layout_.row_blocks; ++r) {
    ExpandRows(layout_, group_, r, ks_, v_, 1, step.pending.inputs.At(step.j, r));
    DiagonalSsm(step, r);
    ContractRows(layout_, group_, r, q_, y_, 1, o_);
  }
  StorePanel(layout_, group_, o_, 1, o, 0);
}

template <typename Stored>
void H3Block<Stored>::ShiftSsm(const TokenStep& step) const {
  const TokenRows& keys = step.pending.keys;
  for (int64_t c = 0; c < layout_.channel_blocks; ++c) {
    const int64_t width =
        std::clamp<int64_t>(layout_.Channels(group_) - c * kTileChannels, 0, kTileChannels);
    LoadBlock({step.k + c * kTileChannels, 0}, width, 1, keys.At(step.j, c));
    RoundTo<Stored>(1, keys.At(step.j, c));
    AddRecent(constants_.Taps(group_, c), {keys.At(step.first_key, c), keys.stride},
              step.j + 1 - step.first_key, step.pending.key_sums.At(step.j, c),
              ks_ + c * kTileChannels);
  }
}

template <typename Stored>
void H3Block<Stored>::DiagonalSsm(const TokenStep& step, int64_t row_block) const {
  const TokenRows& inputs = step.pending.inputs;
  AddRecent(constants_.Rows(group_, row_block).kernel,
            {inputs.At(step.first_input, row_block), inputs.stride}, step.j + 1 - step.first_input,
            step.pending.sums.At(step.j, row_block), y_);
}

template class H3Block<float>;
template class H3Block<BF16>;

RecentRows RecentAt(const H3Layout& layout, const GroupBlock& block, int64_t position) {
  const int64_t j = position % kScanSteps;
  const int64_t first = block.place->base % kScanSteps;
  return {std::max(first, j + 1 - layout.taps), first, j};
}

TokenStep StepAt(const H3PrefillWeights& constants, int64_t group, const GroupBlock& block,
                 int64_t position, const float* qkv, float* o) {
  const H3Layout& layout = constants.layout();
  const RecentRows recent = RecentAt(layout, block, position);
  const int64_t channel = layout.FirstChannel(group);
  return {.taps = constants.Taps(group, 0),
          .taps_stride = layout.channel_blocks * layout.padded_taps() * kTileChannels,
          .kernel = constants.Rows(group, 0).kernel,
          .kernel_stride = layout.row_blocks * constants.RowBlockFloats(),
          .pending = block.pending,
          .first_key = recent.first_key,
          .first_input = recent.first_input,
          .j = recent.j,
          .q = qkv + channel,
          .k = qkv + layout.d_model + channel,
          .v = qkv + 2 * layout.d_model + channel,
          .o = o + channel};
}

template <typename Stored>
void Settle(const H3PrefillWeights& constants, int64_t group, const GroupState<Stored>& state,
            int64_t position) {
  const H3Layout& layout = constants.layout();
  const int64_t base = state.place->base;
  const int64_t pending = position - base;
  assert(pending >= 0 && base % kScanSteps + pending <= kScanSteps);
  if (pending == 0) return;
  SettleRings(layout, state, pending);
  for (int64_t r = 0; r < layout.row_blocks; ++r) {
    const RowConstants rows = constants.Rows(group, r);
    Stored* modes = state.modes + r * layout.modes_values();
    alignas(kTileChannels * sizeof(float)) float inputs[kBlockFloats];
    LoadBlock({state.pending.inputs.At(base % kScanSteps, r), state.pending.inputs.stride},
              kTileChannels, pending, inputs);
    if (pending == kScanSteps) {
      Absorb(rows, inputs, 1, modes);
    } else {
      AbsorbTokens(rows, inputs, pending, modes);
    }
  }
  *state.place = {.base = static_cast<int32_t>(position), .has_ahead = 0};
}

template void Settle(const H3PrefillWeights& constants, int64_t group,
                     const GroupState<float>& state, int64_t position);
template void Settle(const H3PrefillWeights& constants, int64_t group,
                     const GroupState<BF16>& state, int64_t position);

}  // namespace hippodrome::cpu
