#include "kernels/cpu/h3_step.h"

#include <algorithm>
#include <cassert>

#include "kernels/cpu/h3_rows.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/tensor_memory.h"

namespace hippodrome::cpu {
namespace {

// One group of channels; its constants stay in the first cache from sequence to sequence.
class GroupStep {
 public:
  GroupStep(const H3Constants& constants, int64_t group)
      : constants_(constants), layout_(constants.layout()), group_(group) {
    const int64_t panel = layout_.channel_blocks * kLanes;
    ks_ = ThreadScratch<float>(ScratchUse::kH3Tile, 4 * panel + 2 * kLanes);
    v_ = ks_ + panel;
    q_ = v_ + panel;
    o_ = q_ + panel;
    u_ = o_ + panel;
    y_ = u_ + kLanes;
  }

  // qkv, o: column 0 of the sequence's rows.
  void Run(const float* qkv, float* state, int64_t next, float* o) {
    const float* q = qkv + layout_.FirstChannel(group_);
    const float* v = q + 2 * layout_.d_model;
    ShiftSsm(q + layout_.d_model, state, next);
    float* modes = state + layout_.channel_blocks * layout_.ring_floats();
    if (layout_.head_dim == 1 && layout_.Channels(group_) == kLanes) {
      MultiplyRows({ks_, kLanes}, {v, kLanes}, 1, u_, kLanes);
      Step(constants_.Rows(group_, 0), u_, y_, modes);
      MultiplyRows({y_, kLanes}, {q, kLanes}, 1, o + layout_.FirstChannel(group_), kLanes);
      return;
    }
    LoadPanel(layout_, group_, {q, 0}, 1, q_);
    LoadPanel(layout_, group_, {v, 0}, 1, v_);
    std::fill_n(o_, layout_.channel_blocks * kLanes, 0.0f);
    for (int64_t r = 0; r < layout_.row_blocks; ++r) {
      ExpandRows(layout_, group_, r, ks_, v_, 1, u_);
      Step(constants_.Rows(group_, r), u_, y_, modes + r * layout_.block_state_floats());
      ContractRows(layout_, group_, r, q_, y_, 1, o_);
    }
    StorePanel(layout_, group_, o_, 1, o, 0);
  }

 private:
  void ShiftSsm(const float* k, float* rings, int64_t next) {
    for (int64_t c = 0; c < layout_.channel_blocks; ++c) {
      float* ring = rings + c * layout_.ring_floats();
      const int64_t width = std::clamp<int64_t>(layout_.Channels(group_) - c * kLanes, 0, kLanes);
      LoadBlock({k + c * kLanes, 0}, width, 1, ring + next * kLanes);
      RingDot(constants_.Taps(group_, c), ring, layout_.taps, next, ks_ + c * kLanes);
    }
  }

  const H3Constants& constants_;
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

void H3Step(ThreadPool& pool, const H3Constants& constants, Tensor qkv, H3Slots& state,
            Tensor slots, Tensor o) {
  const H3Layout& layout = constants.layout();
  assert(qkv.cols == 3 * layout.d_model && o.cols == layout.d_model);
  assert(slots.cols == qkv.rows && o.rows == qkv.rows);
  const int32_t* slot = I32Row(slots, 0);
  pool.Run(layout.groups, [&](int64_t group, int) {
    GroupStep step(constants, group);
    for (int64_t b = 0; b < qkv.rows; ++b) {
      if (slot[b] < 0) continue;
      step.Run(F32Row(qkv, b), state.Group(slot[b], group), state.clock(slot[b]).next,
               F32Row(o, b));
    }
  });
  for (int64_t b = 0; b < qkv.rows; ++b) {
    if (slot[b] < 0) {
      std::fill_n(F32Row(o, b), layout.d_model, 0.0f);
      continue;
    }
    SlotClock& clock = state.clock(slot[b]);
    clock.next = static_cast<int32_t>((clock.next + 1) % layout.taps);
    clock.empty = false;
  }
}

}  // namespace hippodrome::cpu
