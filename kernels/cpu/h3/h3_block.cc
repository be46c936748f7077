#include "kernels/cpu/h3/h3_block.h"

#include <hwy/cache_control.h>

#include <algorithm>
#include <cassert>

#include "kernels/cpu/base/memory.h"
#include "kernels/cpu/conv/direct_conv.h"
#include "kernels/cpu/h3/h3_scan.h"

namespace hippodrome::cpu {
namespace {

float* RowOf(float* block, int64_t row) { return block + row * kTileChannels; }

void PrefetchRows(const float* rows, int64_t count) {
  for (int64_t i = 0; i < count; ++i) hwy::Prefetch(rows + i * kTileChannels);
}

}  // namespace

H3Block::H3Block(const H3PrefillWeights& constants, int64_t group)
    : constants_(constants), layout_(constants.layout()), group_(group) {
  const int64_t history = layout_.padded_taps() * kTileChannels + kBlockFloats;
  const int64_t panel = layout_.channel_blocks * kTileChannels;
  Parts parts(ThreadScratch<float>(ScratchUse::kH3Block,
                                   history + kBlockFloats + 4 * panel + kTileChannels));
  history_ = parts.Take(history);
  ahead_ = parts.Take(kBlockFloats);
  ks_ = parts.Take(panel);
  v_ = parts.Take(panel);
  q_ = parts.Take(panel);
  o_ = parts.Take(panel);
  y_ = parts.Take(kTileChannels);
}

void H3Block::Step(const GroupState& state, int64_t position, const float* qkv, float* o,
                   const GroupState& ahead) const {
  const int64_t j = position % kScanSteps;
  if (j == 0) Settle(constants_, group_, state, position, ahead);
  if (state.block->has_ahead == 0) Begin(state, ahead);
  const int64_t first = state.block->base % kScanSteps;
  const float* q = qkv + layout_.FirstChannel(group_);
  const float* v = q + 2 * layout_.d_model;
  ShiftSsm(state, first, j, q + layout_.d_model);
  if (layout_.head_dim == 1 && layout_.Channels(group_) == kTileChannels) {
    MultiplyRows({ks_, kTileChannels}, {v, kTileChannels}, 1, RowOf(state.inputs, j),
                 kTileChannels);
    DiagonalSsm(state, first, j, 0);
    MultiplyRows({y_, kTileChannels}, {q, kTileChannels}, 1, o + layout_.FirstChannel(group_),
                 kTileChannels);
    return;
  }
  LoadPanel(layout_, group_, {q, 0}, 1, q_);
  LoadPanel(layout_, group_, {v, 0}, 1, v_);
  std::fill_n(o_, layout_.channel_blocks * kTileChannels, 0.0f);
  for (int64_t r = 0; r < layout_.row_blocks; ++r) {
    ExpandRows(layout_, group_, r, ks_, v_, 1, RowOf(state.inputs + r * kBlockFloats, j));
    DiagonalSsm(state, first, j, r);
    ContractRows(layout_, group_, r, q_, y_, 1, o_);
  }
  StorePanel(layout_, group_, o_, 1, o, 0);
}

void H3Block::ShiftSsm(const GroupState& state, int64_t first, int64_t j, const float* k) const {
  const int64_t count = std::min(j + 1 - first, layout_.taps);
  for (int64_t c = 0; c < layout_.channel_blocks; ++c) {
    float* keys = state.keys + c * kBlockFloats;
    const int64_t width =
        std::clamp<int64_t>(layout_.Channels(group_) - c * kTileChannels, 0, kTileChannels);
    LoadBlock({k + c * kTileChannels, 0}, width, 1, RowOf(keys, j));
    AddRecent(constants_.Taps(group_, c), RowOf(keys, j + 1 - count), count,
              RowOf(state.key_sums + c * kBlockFloats, j), ks_ + c * kTileChannels);
  }
}

void H3Block::DiagonalSsm(const GroupState& state, int64_t first, int64_t j,
                          int64_t row_block) const {
  const int64_t block = row_block * kBlockFloats;
  AddRecent(constants_.Rows(group_, row_block).kernel, RowOf(state.inputs + block, first),
            j + 1 - first, RowOf(state.sums + block, j), y_);
}

// Row i of what looks ahead is for the token i after the base.
void H3Block::Begin(const GroupState& state, const GroupState& ahead) const {
  const int64_t first = state.block->base % kScanSteps;
  const auto store = [&](float* block) {
    std::copy_n(ahead_, kBlockFloats - first * kTileChannels, RowOf(block, first));
  };
  float* now = RowOf(history_, layout_.padded_taps());
  for (int64_t c = 0; c < layout_.channel_blocks; ++c) {
    const int64_t ring = c * layout_.ring_floats();
    UnrollRing(layout_, state.rings + ring, state.block->base % layout_.taps, history_,
               ahead.rings + ring);
    std::fill_n(now, kBlockFloats, 0.0f);
    Fir(constants_.Taps(group_, c), layout_.padded_taps(), now, kScanSteps, ahead_);
    store(state.key_sums + c * kBlockFloats);
  }
  for (int64_t r = 0; r < layout_.row_blocks; ++r) {
    LookAhead(constants_.Rows(group_, r), state.modes + r * layout_.block_state_floats(), ahead_);
    store(state.sums + r * kBlockFloats);
  }
  state.block->has_ahead = 1;
}

void PrefetchStep(const H3Layout& layout, const GroupState& state, int64_t position) {
  const int64_t rows = position % kScanSteps + 1;
  hwy::Prefetch(state.block);
  for (int64_t c = 0; c < layout.channel_blocks; ++c) {
    PrefetchRows(state.keys + c * kBlockFloats, rows);
    PrefetchRows(RowOf(state.key_sums + c * kBlockFloats, rows - 1), 1);
  }
  for (int64_t r = 0; r < layout.row_blocks; ++r) {
    PrefetchRows(state.inputs + r * kBlockFloats, rows);
    PrefetchRows(RowOf(state.sums + r * kBlockFloats, rows - 1), 1);
  }
}

void Settle(const H3PrefillWeights& constants, int64_t group, const GroupState& state,
            int64_t position, const GroupState& ahead) {
  const H3Layout& layout = constants.layout();
  const int64_t base = state.block->base;
  const int64_t pending = position - base;
  assert(pending >= 0 && base % kScanSteps + pending <= kScanSteps);
  if (pending == 0) return;
  const int64_t first = base % kScanSteps;
  for (int64_t c = 0; c < layout.channel_blocks; ++c) {
    float* ring = state.rings + c * layout.ring_floats();
    for (int64_t i = 0; i < pending; ++i) {
      std::copy_n(RowOf(state.keys + c * kBlockFloats, first + i), kTileChannels,
                  RowOf(ring, (base + i) % layout.taps));
    }
  }
  for (int64_t r = 0; r < layout.row_blocks; ++r) {
    const RowConstants rows = constants.Rows(group, r);
    const float* inputs = RowOf(state.inputs + r * kBlockFloats, first);
    float* modes = state.modes + r * layout.block_state_floats();
    if (pending == kScanSteps) {
      Absorb(rows, inputs, 1, modes, ahead.modes + r * layout.block_state_floats());
    } else {
      AbsorbTokens(rows, inputs, pending, modes);
    }
  }
  *state.block = {.base = static_cast<int32_t>(position), .has_ahead = 0};
}

void UnrollRing(const H3Layout& layout, const float* ring, int64_t next, float* history,
                const float* ahead) {
  const int64_t zeros = layout.padded_taps() - layout.taps;
  history = std::fill_n(history, zeros * kTileChannels, 0.0f);
  PrefetchRows(ahead, layout.taps);
  const float* newest = ring + next * kTileChannels;
  history = std::copy(newest, ring + layout.ring_floats(), history);
  std::copy(ring, newest, history);
}

}  // namespace hippodrome::cpu
