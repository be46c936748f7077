#include "kernels/cpu/h3/h3_step.h"

#include <algorithm>
#include <cassert>

#include "kernels/cpu/base/memory.h"
#include "kernels/cpu/h3/h3_block.h"
#include "kernels/cpu/h3/h3_layout.h"

namespace hippodrome::cpu {
namespace {

// Neighbouring groups in one task, so that memory is read in long runs; enough tasks to even out.
constexpr int64_t kTasksPerThread = 8;
// States are fetched this many steps ahead: memory takes longer to answer than a step takes.
constexpr int64_t kAhead = 8;

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
    const int64_t end = (task + 1) * layout.groups / tasks;
    for (int64_t group = task * layout.groups / tasks; group < end; ++group) {
      const H3Block block(constants, group);
      for (int64_t b = 0; b < qkv.rows; ++b) {
        const int64_t later = (b + kAhead) % qkv.rows;
        const int64_t its_group = group + (b + kAhead) / qkv.rows;
        if (its_group < end && slot[later] >= 0) {
          PrefetchStep(layout, state.Group(slot[later], its_group), position[later]);
        }
        if (slot[b] < 0) continue;
        const GroupState own = state.Group(slot[b], group);
        const int64_t next = (b + 1) % qkv.rows;
        const int64_t next_group = group + (b + 1) / qkv.rows;
        const bool starts = next_group < end && slot[next] >= 0 && position[next] % kScanSteps == 0;
        block.Step(own, position[b], F32Row(qkv, b), F32Row(o, b),
                   starts ? state.Group(slot[next], next_group) : own);
      }
    }
  });
  for (int64_t b = 0; b < qkv.rows; ++b) {
    if (slot[b] < 0) std::fill_n(F32Row(o, b), layout.d_model, 0.0f);
  }
}

}  // namespace hippodrome::cpu
