#include "kernels/cpu/h3/h3_step.h"

#include <algorithm>
#include <cassert>

#include "kernels/cpu/base/memory.h"
#include "kernels/cpu/h3/h3_layout.h"
#include "kernels/cpu/h3/h3_scan.h"

namespace hippodrome::cpu {
namespace {

// Neighbouring groups in one task, so that memory is read in long runs; enough tasks to even out.
constexpr int64_t kTasksPerThread = 8;
// States are fetched this many steps ahead: memory takes longer to answer than a step takes.
constexpr int64_t kAhead = 2;

// One group of channels of one sequence; constants stay in the first cache from one to the next.
class GroupStep {
 public:
  GroupStep(const H3PrefillWeights& constants, int64_t group)
      : constants_(constants), layout_(constants.layout()), group_(group) {
    const int64_t panel = layout_.channel_blocks * kTileChannels;
    ks_ = ThreadScratch<float>(ScratchUse::kH3Tile, 4 * panel + 2 * kTileChannels);
    v_ = ks_ + panel;
    q_ = v_ + panel;
    o_ = q_ + panel;
    u_ = o_ + panel;
    y_ = u_ + kTileChannels;
  }

  // qkv, o: column 0 of the sequence's rows; ahead: the state of a sequence to come.
  void Run(const float* qkv, float* state, int64_t next, const float* ahead, float* o) {
    const float* q = qkv + layout_.FirstChannel(group_);
    const float* v = q + 2 * layout_.d_model;
    ShiftSsm(q + layout_.d_model, state, next, ahead);
    const int64_t first_mode = layout_.channel_blocks * layout_.ring_floats();
    float* modes = state + first_mode;
    ahead += first_mode;
    if (layout_.head_dim == 1 && layout_.Channels(group_) == kTileChannels) {
      MultiplyRows({ks_, kTileChannels}, {v, kTileChannels}, 1, u_, kTileChannels);
      Step(constants_.Rows(group_, 0), u_, y_, modes, ahead);
      MultiplyRows({y_, kTileChannels}, {q, kTileChannels}, 1, o + layout_.FirstChannel(group_),
                   kTileChannels);
      return;
    }
    LoadPanel(layout_, group_, {q, 0}, 1, q_);
    LoadPanel(layout_, group_, {v, 0}, 1, v_);
    std::fill_n(o_, layout_.channel_blocks * kTileChannels, 0.0f);
    for (int64_t r = 0; r < layout_.row_blocks; ++r) {
      ExpandRows(layout_, group_, r, ks_, v_, 1, u_);
      const int64_t block = r * layout_.block_state_floats();
      Step(constants_.Rows(group_, r), u_, y_, modes + block, ahead + block);
      ContractRows(layout_, group_, r, q_, y_, 1, o_);
    }
    StorePanel(layout_, group_, o_, 1, o, 0);
  }

 private:
  void ShiftSsm(const float* k, float* rings, int64_t next, const float* ahead) {
    for (int64_t c = 0; c < layout_.channel_blocks; ++c) {
      float* ring = rings + c * layout_.ring_floats();
      const int64_t width =
          std::clamp<int64_t>(layout_.Channels(group_) - c * kTileChannels, 0, kTileChannels);
      LoadBlock({k + c * kTileChannels, 0}, width, 1, ring + next * kTileChannels);
      RingDot(constants_.Taps(group_, c), ring, layout_.taps, next, ks_ + c * kTileChannels,
              ahead + c * layout_.ring_floats());
    }
  }

  const H3PrefillWeights& constants_;
  const H3Layout& layout_;
  const int64_t group_;
  float* ks_;  // panels of one step
  float* v_;
  float* q_;
  float* o_;
  float* u_;  // one row block
  float* y_;
};

}  // namespace

void H3Step(ThreadPool& pool, const H3PrefillWeights& constants, Tensor qkv, H3Slots& state,
            Tensor slots, Tensor positions, Tensor o) {
  const H3Layout& layout = constants.layout();
  assert(qkv.cols == 3 * layout.d_model && o.cols == layout.d_model);
  assert(slots.cols == qkv.rows && positions.cols == qkv.rows && o.rows == qkv.rows);
  const int32_t* slot = I32Row(slots, 0);
  const int32_t* position = I32Row(positions, 0);
  const int64_t tasks = std::min(layout.groups, kTasksPerThread * pool.threads());
  pool.Run(tasks, [&](int64_t task, int) {
    const int64_t begin = task * layout.groups / tasks * qkv.rows;
    const int64_t end = (task + 1) * layout.groups / tasks * qkv.rows;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t group = i / qkv.rows;
      const int64_t b = i % qkv.rows;
      if (slot[b] < 0) continue;
      const int64_t later = std::min(i + kAhead, end - 1);
      const int32_t later_slot = slot[later % qkv.rows];
      GroupStep(constants, group)
          .Run(F32Row(qkv, b), state.Group(slot[b], group), position[b] % layout.taps,
               state.Group(later_slot < 0 ? slot[b] : later_slot, later / qkv.rows), F32Row(o, b));
    }
  });
  for (int64_t b = 0; b < qkv.rows; ++b) {
    if (slot[b] < 0) std::fill_n(F32Row(o, b), layout.d_model, 0.0f);
  }
}

}  // namespace hippodrome::cpu
